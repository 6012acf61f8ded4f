import type { RecordedExchange } from './exchange.ts';

/** One difference between two recordings, with the places where it was found. */
export interface Difference {
  /** `GET /v1/api-keys header etag: none → "<tag>"`. */
  readonly text: string;
  readonly tests: readonly string[];
}

/** A difference that is meant, with its reason. */
export interface AllowedChange {
  /** A regular expression for the text of differences. */
  readonly difference: string;
  readonly reason: string;
}

/** Calls of one test file before and after, in pairs by test, method and address; each difference once, however many tests show it. */
export function compareExchanges(before: readonly RecordedExchange[], after: readonly RecordedExchange[]): Difference[] {
  const found = new Map<string, string[]>();
  const note = (text: string, test: string): void => {
    const tests = found.get(text) ?? [];
    found.set(text, tests);
    if (!tests.includes(test)) tests.push(test);
  };
  const [old, current] = [paired(before), paired(after)];
  for (const key of new Set([...old.keys(), ...current.keys()])) {
    const [a, b] = [old.get(key), current.get(key)];
    const some = a ?? b;
    if (some === undefined) continue;
    const route = `${some.request.method} ${addressOf(some.request.url)}`;
    if (a === undefined || b === undefined) note(`${route} ${a === undefined ? 'is asked now' : 'is not asked any more'}`, some.test);
    else for (const each of differencesOf(a, b)) note(`${route} ${each}`, some.test);
  }
  return [...found].map(([text, tests]) => ({ text, tests }));
}

/** The differences that no allowed change covers, and the allowed changes that nothing needs any more. */
export function judge(
  differences: readonly Difference[],
  allowed: readonly AllowedChange[],
): { readonly unexpected: readonly Difference[]; readonly unused: readonly AllowedChange[] } {
  const rules = allowed.map((change) => ({ change, pattern: new RegExp(change.difference) }));
  return {
    unexpected: differences.filter(({ text }) => !rules.some(({ pattern }) => pattern.test(text))),
    unused: rules.filter(({ pattern }) => !differences.some(({ text }) => pattern.test(text))).map(({ change }) => change),
  };
}

/** By test and request, and how often the test has sent it before: requests that are sent side by side may arrive in another order. */
function paired(exchanges: readonly RecordedExchange[]): Map<string, RecordedExchange> {
  const pairs = new Map<string, RecordedExchange>();
  for (const exchange of exchanges) {
    const { method, url, body } = exchange.request;
    const asked = `${exchange.test}\n${method} ${url}\n${JSON.stringify(body)}`;
    let turn = 1;
    while (pairs.has(`${asked}\n${turn}`)) turn++;
    pairs.set(`${asked}\n${turn}`, exchange);
  }
  return pairs;
}

function addressOf(url: string): string {
  const [path = '', query] = url.split('?');
  const names = query === undefined ? [] : [...new Set(new URLSearchParams(query).keys())];
  return `${path.replaceAll(/<[^>]*>/g, ':id')}${names.length === 0 ? '' : `?${names.join('&')}`}`;
}

function* differencesOf(before: RecordedExchange, after: RecordedExchange): Iterable<string> {
  const [a, b] = [before.response, after.response];
  if (a.status !== b.status) yield `status: ${a.status} → ${b.status}`;
  for (const name of namesOf(a.headers, b.headers)) {
    const [was, is] = [a.headers[name], b.headers[name]].map(shown);
    if (was !== is) yield `header ${name}: ${was} → ${is}`;
  }
  yield* bodyDifferences('body', a.body, b.body);
  const [was, is] = [before.statements, after.statements].map((statements) =>
    statements.filter((each) => !/^(?:begin|commit|set|rollback)$/.test(each)),
  );
  if (was!.join() !== is!.join()) yield `statements: ${was!.length} [${was!.join('; ')}] → ${is!.length} [${is!.join('; ')}]`;
}

function* bodyDifferences(path: string, before: unknown, after: unknown): Iterable<string> {
  if (isMembers(before) && isMembers(after)) {
    for (const name of namesOf(before, after)) {
      if (!(name in before)) yield `${path}.${name}: added, ${shown(after[name])}`;
      else if (!(name in after)) yield `${path}.${name}: removed, ${shown(before[name])}`;
      else yield* bodyDifferences(`${path}.${name}`, before[name], after[name]);
    }
    const [was, is] = [before, after].map((value) => Object.keys(value).join());
    if (was !== is && was!.split(',').sort().join() === is!.split(',').sort().join()) yield `${path}: order of members ${was} → ${is}`;
  } else if (Array.isArray(before) && Array.isArray(after)) {
    if (before.length !== after.length) yield `${path}: ${before.length} → ${after.length} elements`;
    else for (const [index, each] of before.entries()) yield* bodyDifferences(`${path}[]`, each, after[index]);
  } else if (shown(before) !== shown(after)) yield `${path}: ${shown(before)} → ${shown(after)}`;
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function namesOf(a: object, b: object): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])];
}

function shown(value: unknown): string {
  return value === undefined ? 'none' : (JSON.stringify(value) ?? 'none').slice(0, 300);
}
