import { readJson } from '../client/json-value.ts';
import { isCarriedExactly, isJsonNumber } from './exact-number.ts';
import { joinKeyPath, replacesAbove, valueAt } from './key-path.ts';
import { LoadFailure } from './load-failure.ts';
import { merge } from './merge.ts';
import { DEPTH_MAX, emptyTable, isTable, memberOf, nestsDeeper, type Table, type Value } from './value.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable of a section: its name, the segments after the prefix, its text. */
export interface Variable {
  readonly name: string;
  readonly segments: readonly string[];
  readonly text: string;
}

/** A variable after it was applied: the keys it reached and what it put there. */
export interface Override {
  readonly name: string;
  readonly path: readonly string[];
  readonly value: Value;
}

/** `<APPLICATION>__`, with everything outside A–Z and 0–9 as an underscore. */
export function defaultPrefix(application: string): string {
  return `${application.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}__`;
}

/**
 * The variables of one prefix, the least specific first, so that `POOL__MAX` always wins over `POOL={"max":1}`.
 * A blank variable counts as unset.
 */
export function variablesOf(environment: Environment, prefix: string): Variable[] {
  const variables: Variable[] = [];
  for (const name in environment) {
    const text = environment[name];
    if (!name.startsWith(prefix) || name.length === prefix.length || text === undefined || text.trim() === '') continue;
    variables.push({ name, segments: name.slice(prefix.length).split('__'), text });
  }
  return variables.sort((a, b) => a.segments.length - b.segments.length || (a.name < b.name ? -1 : 1));
}

export interface Overlaid {
  readonly document: Table;
  readonly overrides: readonly Override[];
}

/** Applies variables to a copy of a document and reports which key each one set. */
export function applyEnvironment(document: Table, variables: readonly Variable[]): Overlaid {
  const overrides: Override[] = [];
  let result = document;
  for (const variable of variables) {
    const override = locate(result, variable);
    overrides.push(override);
    result = merge(result, nest(override));
  }
  return { document: result, overrides };
}

/** Finds the keys that a variable sets, and refuses to replace a table or to set a key below a scalar. */
function locate(document: Table, { name, segments, text }: Variable): Override {
  if (segments.includes('')) throw new LoadFailure('env', `env ${name}`, `${name} has an empty segment between underscores`);
  const value = coerce(text);
  if (segments.length > DEPTH_MAX || nestsDeeper(value, DEPTH_MAX - segments.length)) {
    throw new LoadFailure('env', `env ${name}`, `${name} nests tables and arrays deeper than ${DEPTH_MAX} levels`);
  }
  const path: string[] = [];
  let at: Value | undefined = document;
  for (const segment of segments) {
    if (at !== undefined && !isTable(at)) {
      throw new LoadFailure('env', `env ${name}`, `${name} reaches below ${joinKeyPath(path)}, which is not a table`);
    }
    const key: string = at === undefined ? segment.toLowerCase() : matchingKey(at, segment);
    path.push(key);
    at = at === undefined ? undefined : memberOf(at, key);
  }
  if (isTable(at) && !isTable(value)) {
    throw new LoadFailure(
      'env',
      `env ${name}`,
      `${name} would replace the table ${joinKeyPath(path)}; set its keys one by one or give a JSON object`,
    );
  }
  return { name, path, value };
}

/** A document that holds nothing but the override. */
function nest({ path, value }: Override): Table {
  const outermost = emptyTable();
  let table = outermost;
  for (const key of path.slice(0, -1)) {
    const next = emptyTable();
    table[key] = next;
    table = next;
  }
  table[path.at(-1)!] = value;
  return outermost;
}

/** The existing key that equals the segment when case is ignored; an exact match first. With none, the segment in lower case. */
function matchingKey(table: Table, segment: string): string {
  if (memberOf(table, segment) !== undefined) return segment;
  const wanted = segment.toLowerCase();
  return Object.keys(table).find((key) => key.toLowerCase() === wanted) ?? wanted;
}

/** true, false, JSON numbers a double carries exactly, JSON arrays, objects and quoted strings; anything else is the text itself. */
export function coerce(text: string): Value {
  const trimmed = text.trim();
  if (trimmed === 'true') return true;
  if (trimmed === 'false') return false;
  if (isJsonNumber(trimmed)) return isCarriedExactly(trimmed) ? Number(trimmed) : text;
  if (!/^[[{"]/.test(trimmed)) return text;
  try {
    return exactJson(trimmed);
  } catch {
    return text;
  }
}

function exactJson(text: string): Value {
  const number = (source: string): Value => (isCarriedExactly(source) ? Number(source) : source);
  const object = (members: readonly (readonly [string, unknown])[]): Table => {
    const table = emptyTable();
    for (const [key, value] of members) table[key] = value as Value;
    return table;
  };
  return readJson(text, { number, object }) as Value;
}

/**
 * The variable that decides a path: the last one that set it, a table around it, or a key below it. Null: one has put something else in the place of a
 * table above it, such as the null of `POOL={"limits":null}` for `pool.limits.max`, and nothing has the path any more.
 */
export function overrideAt(overrides: readonly Override[], path: readonly string[]): Override | null | undefined {
  const deciding = overrides.findLast((override) => answers(override, path) || removes(override, path));
  return deciding === undefined || answers(deciding, path) ? deciding : null;
}

function answers(override: Override, path: readonly string[]): boolean {
  const shared = Math.min(path.length, override.path.length);
  for (let index = 0; index < shared; index++) if (path[index] !== override.path[index]) return false;
  if (path.length <= override.path.length) return true;
  return isTable(override.value) && valueAt(override.value, path.slice(override.path.length)) !== undefined;
}

function removes(override: Override, path: readonly string[]): boolean {
  const isAbove = override.path.length < path.length && override.path.every((key, index) => key === path[index]);
  return isAbove && isTable(override.value) && replacesAbove(override.value, path.slice(override.path.length));
}
