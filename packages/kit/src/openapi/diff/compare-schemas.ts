import type { DiffRuleId } from './rules.ts';

export type Json = Readonly<Record<string, unknown>>;
export type Report = (id: DiffRuleId, place: string, message: string) => void;

/** Both documents: where references of each schema lead. */
export interface Documents {
  readonly base: Json;
  readonly revision: Json;
}

/**
 * What a server accepts may only grow, what it returns may only shrink. Follows references; a union is compared branch by branch, and what is
 * too different to be compared is reported as changed.
 */
export class SchemaComparison {
  readonly #documents: Documents;
  readonly #direction: 'input' | 'output';
  readonly #report: Report;
  readonly #seen = new Set<string>();

  constructor(documents: Documents, direction: 'input' | 'output', report: Report) {
    this.#documents = documents;
    this.#direction = direction;
    this.#report = report;
  }

  compare(before: unknown, after: unknown, place: string): void {
    const [a, b] = [followed(before, this.#documents.base), followed(after, this.#documents.revision)];
    const pair = `${referenceOf(before)} ${referenceOf(after)}`;
    // The same two components in the same place of a recursive schema are compared once.
    if (pair !== ' ') {
      if (this.#seen.has(pair)) return;
      this.#seen.add(pair);
    }
    this.#types(a, b, place);
    this.#values(a, b, place);
    this.#bounds(a, b, place);
    this.#properties(a, b, place);
    if (isObject(a['items']) || isObject(b['items'])) this.compare(a['items'] ?? {}, b['items'] ?? {}, `${place}[]`);
    this.#unions(a, b, place);
  }

  #grew(place: string, message: string): void {
    this.#report(this.#direction === 'input' ? 'input-widened' : 'output-widened', place, message);
  }

  #shrank(place: string, message: string): void {
    this.#report(this.#direction === 'input' ? 'input-narrowed' : 'output-narrowed', place, message);
  }

  #types(a: Json, b: Json, place: string): void {
    const [before, after] = [typesOf(a), typesOf(b)];
    if (before === undefined && after === undefined) return;
    if (before === undefined) return this.#shrank(place, `is ${after?.join(' or ')} now, and could be anything.`);
    if (after === undefined) return this.#grew(place, `could be ${before.join(' or ')}, and can be anything now.`);
    const isCovered = (type: string, by: readonly string[]) => by.includes(type) || (type === 'integer' && by.includes('number'));
    const [gone, come] = [before.filter((type) => !isCovered(type, after)), after.filter((type) => !isCovered(type, before))];
    if (gone.length > 0) this.#shrank(place, `cannot be ${gone.join(' or ')} any more.`);
    if (come.length > 0) this.#grew(place, `can be ${come.join(' or ')} now.`);
  }

  #values(a: Json, b: Json, place: string): void {
    const [before, after] = [valuesOf(a), valuesOf(b)];
    if (before === undefined && after === undefined) return;
    if (before === undefined) return this.#shrank(place, `is one of ${after?.join(', ')} now.`);
    if (after === undefined) return this.#grew(place, `is no longer one of ${before.join(', ')} only.`);
    const [gone, come] = [before.filter((value) => !after.includes(value)), after.filter((value) => !before.includes(value))];
    if (gone.length > 0) this.#shrank(place, `cannot be ${gone.join(', ')} any more.`);
    if (come.length > 0) this.#grew(place, `can be ${come.join(', ')} now.`);
  }

  #bounds(a: Json, b: Json, place: string): void {
    for (const [keyword, sign] of BOUNDS) {
      const [before, after] = [a[keyword], b[keyword]];
      if (before === after) continue;
      if (typeof after !== 'number') this.#grew(place, `has no ${keyword} any more.`);
      else if (typeof before !== 'number' || (after - before) * sign > 0)
        this.#shrank(place, `has ${keyword} ${after}${typeof before === 'number' ? `, was ${before}` : ''}.`);
      else this.#grew(place, `has ${keyword} ${after}, was ${before}.`);
    }
    for (const keyword of ['pattern', 'format', 'multipleOf', 'uniqueItems'] as const) {
      const [before, after] = [a[keyword], b[keyword]];
      if (before === after) continue;
      if (after === undefined || after === false) this.#grew(place, `has no ${keyword} any more.`);
      else this.#shrank(place, `has ${keyword} ${JSON.stringify(after)}${before === undefined ? '' : `, was ${JSON.stringify(before)}`}.`);
    }
  }

  #properties(a: Json, b: Json, place: string): void {
    const [before, after] = [membersOf(a), membersOf(b)];
    const [needed, needs] = [requiredOf(a), requiredOf(b)];
    const prefix = this.#direction;
    for (const name of Object.keys(before)) {
      const at = place === '' ? name : `${place}.${name}`;
      if (!(name in after)) this.#report(`${prefix}-property-removed`, at, 'is gone.');
      else {
        if (!needed.has(name) && needs.has(name)) this.#report(`${prefix}-property-required`, at, 'is required now.');
        if (needed.has(name) && !needs.has(name)) this.#report(`${prefix}-property-optional`, at, 'is optional now.');
        this.compare(before[name], after[name], at);
      }
    }
    for (const name of Object.keys(after)) {
      if (name in before) continue;
      const at = place === '' ? name : `${place}.${name}`;
      const isNeeded = prefix === 'input' && needs.has(name);
      this.#report(isNeeded ? 'input-property-required' : `${prefix}-property-added`, at, isNeeded ? 'is new and required.' : 'is new.');
    }
  }

  #unions(a: Json, b: Json, place: string): void {
    for (const keyword of ['anyOf', 'oneOf', 'allOf'] as const) {
      const [before, after] = [branchesOf(a, keyword), branchesOf(b, keyword)];
      if (keyword === 'allOf') {
        for (const [index, branch] of before.entries()) if (after[index] !== undefined) this.compare(branch, after[index], place);
        continue;
      }
      for (const [index, branch] of before.entries()) {
        if (after[index] === undefined) this.#shrank(place, `has fewer alternatives.`);
        else this.compare(branch, after[index], place);
      }
      if (after.length > before.length) this.#grew(place, `has more alternatives.`);
    }
  }
}

/** A larger value of the first kind accepts less, of the second kind more. */
const BOUNDS: readonly (readonly [string, 1 | -1])[] = [
  ['minimum', 1],
  ['exclusiveMinimum', 1],
  ['minLength', 1],
  ['minItems', 1],
  ['maximum', -1],
  ['exclusiveMaximum', -1],
  ['maxLength', -1],
  ['maxItems', -1],
];

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function referenceOf(schema: unknown): string {
  return isObject(schema) && typeof schema['$ref'] === 'string' ? schema['$ref'] : '';
}

export function followed(schema: unknown, document: Json, depth = 0): Json {
  if (!isObject(schema)) return {};
  const reference = referenceOf(schema);
  if (!reference.startsWith('#/') || depth > 20) return schema;
  const target = reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, step) => (isObject(at) ? at[step.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined), document);
  return followed(target, document, depth + 1);
}

function typesOf({ type }: Json): string[] | undefined {
  if (type === undefined) return undefined;
  return (Array.isArray(type) ? type : [type]).map(String);
}

function valuesOf({ enum: values, const: value }: Json): string[] | undefined {
  if (Array.isArray(values)) return values.map((each) => JSON.stringify(each));
  return value === undefined ? undefined : [JSON.stringify(value)];
}

function membersOf({ properties }: Json): Json {
  return isObject(properties) ? properties : {};
}

function requiredOf({ required }: Json): ReadonlySet<string> {
  return new Set(Array.isArray(required) ? required.map(String) : []);
}

function branchesOf(schema: Json, keyword: string): unknown[] {
  const branches = schema[keyword];
  return Array.isArray(branches) ? branches : [];
}
