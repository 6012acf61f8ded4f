import { FAULTS_MAX } from '../../../errors/fault-collector.ts';
import type { FieldError } from '../../../errors/kit-error.ts';
import { inexactNumberFaults, moveInexactNumbers } from '../../../http/json/inexact-numbers.ts';
import { unknownField } from '../../../http/json/unknown-fields.ts';
import { INPUT_LIMITS } from '../../../options/input-limits.ts';
import type { RouteTool, ToolArgument } from '../tools/tool.ts';

type Given = Readonly<Record<string, unknown>>;

/** The request that a call stands for; `faults` where the arguments cannot be written as one. */
export interface ToolRequest {
  readonly url: string;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly faults: readonly FieldError[];
}

/** Characters that a header can have. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** A query string. One class for all of it: an expression that also looks for the cursor took 28 s for 320 kB. */
const QUERY_STRING = /^\?[\w.!~*'(),%=&+-]*$/;

/** Puts the arguments where the route expects them. What they mean, the route decides. */
export function toolRequest({ route, arguments: known, rows }: RouteTool, given: Given): ToolRequest {
  const params: Record<string, string> = {};
  const headers: Record<string, string> = {};
  const query: string[] = [];
  let page: readonly string[] = [];
  const inBody: [string, unknown][] = [];
  let whole: unknown;
  const faults: FieldError[] = [];
  const bodyNames = new Map<string, string | null>();
  const names = [...known.keys()];
  for (const [name, value] of Object.entries(given)) {
    const argument = known.get(name);
    if (argument === undefined) {
      // Only of the caller's own names: an operation may have others.
      if (faults.length < FAULTS_MAX) faults.push(unknownField(['arguments'], name, names));
      continue;
    }
    const { part, name: inside, style } = argument;
    if (part === 'confirmation') continue;
    if (part === 'body') {
      bodyNames.set(name, inside);
      if (inside === null) whole = value;
      else inBody.push([inside, value]);
      continue;
    }
    if (value === null || value === undefined) continue;
    const location = [part === 'idempotency-key' ? 'headers' : part, inside ?? name];
    const texts = textsOf(value, part === 'query');
    if (texts === undefined) faults.push({ location, code: 'invalid_type', message: wrongType(part) });
    else if (part === 'params') {
      const fault = pathFault(texts[0] as string);
      if (fault === undefined) params[inside as string] = texts[0] as string;
      else faults.push({ location, ...fault });
    } else if (part === 'query') {
      const continued = inside === 'cursor' ? pageOf(texts[0] ?? '') : undefined;
      if (continued !== undefined) page = continued;
      // One by one: a list of the caller may be longer than the arguments of one push() can be.
      else for (const pair of queryOf(inside as string, texts, style)) query.push(pair);
    } else if (!HEADER_VALUE.test(texts[0] as string))
      faults.push({ location, code: 'invalid', message: 'A character is not allowed here.' });
    else headers[part === 'headers' ? (inside as string).toLowerCase() : 'idempotency-key'] = texts[0] as string;
  }
  for (const { part, name } of known.values())
    if (part === 'params' && params[name as string] === undefined && !faults.some(({ location }) => location[1] === name))
      faults.push({ location: ['params', name as string], code: 'required', message: 'Required.' });
  for (const pair of notGiven(page, query)) query.push(pair);
  if (rows !== null) {
    const { parameter, count } = rows;
    const isGiven = query.some((pair) => pair.startsWith(`${parameter}=`)) || inBody.some(([name]) => name === parameter);
    if (!isGiven) query.push(`${parameter}=${count}`);
  }
  const isWhole = known.values().some(({ part, name }) => part === 'body' && name === null);
  const body = route.body === undefined ? undefined : isWhole ? whole : Object.fromEntries(inBody);
  faults.push(...keepInexactNumbers(given, bodyNames, body));
  const path = route.path.replaceAll(/:(\w+)/g, (_match, name: string) => encoded(params[name] ?? ''));
  return { url: query.length === 0 ? path : `${path}?${query.join('&')}`, params, headers, body, faults };
}

/** No URL leads to the route with an empty parameter, or with one that the router does not read. */
function pathFault(text: string): Omit<FieldError, 'location'> | undefined {
  if (text === '') return { code: 'required', message: 'Required.' };
  const { pathParameterLength: max } = INPUT_LIMITS;
  return text.length > max ? { code: 'too_big', message: `At most ${max} characters are allowed.` } : undefined;
}

function wrongType(part: ToolArgument['part']): string {
  return part === 'query' ? 'Expected a string, a number, a boolean or a list of them.' : 'Expected a string.';
}

function textsOf(value: unknown, isList: boolean): readonly string[] | undefined {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return [String(value)];
  if (!isList || !Array.isArray(value)) return undefined;
  const texts = value.map((each) => textsOf(each, false)?.[0]);
  return texts.includes(undefined) ? undefined : (texts as string[]);
}

/** The parameters of `next` or `previous` of a page, which are the query string of another page with its cursor. */
function pageOf(text: string): readonly string[] | undefined {
  const pairs = QUERY_STRING.test(text) ? text.slice(1).split('&') : [];
  return pairs.some((pair) => pair.startsWith('cursor=')) ? pairs : undefined;
}

/** The parameters of a page that the call does not give itself: filters and fields need not be repeated. */
function notGiven(page: readonly string[], query: readonly string[]): string[] {
  const nameOf = (pair: string): string => pair.split('=', 1)[0] as string;
  const given = new Set(query.map(nameOf));
  return page.filter((pair) => !given.has(nameOf(pair)));
}

/** An empty list is not sent, as by a form without a choice. */
function queryOf(name: string, texts: readonly string[], style: ToolArgument['style']): string[] {
  if (texts.length === 0) return [];
  const values = style === 'comma' ? [texts.map(encoded).join(',')] : texts.map(encoded);
  return values.map((value) => `${encoded(name)}=${value}`);
}

/** Half of a surrogate pair cannot be written in UTF-8: it becomes U+FFFD, as in every browser. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Numbers with more digits than are stored: those of the body are reported by the route, the others here. */
function keepInexactNumbers(given: Given, inBody: ReadonlyMap<string, string | null>, body: unknown): FieldError[] {
  const named = [...inBody].filter((entry): entry is [string, string] => entry[1] !== null);
  if (typeof body === 'object' && body !== null && named.length > 0) moveInexactNumbers(given, body, new Map(named));
  return inexactNumberFaults(given, ['arguments'], []).filter(({ location }) => !inBody.has(String(location[1])));
}
