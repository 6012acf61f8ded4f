import { countQueries } from '../../db/engine/query-observer.ts';
import type { TestClient } from '../test-callers.ts';
import { check, checkEqual, type CrudCheck, type CrudSubject, type Item } from './subject.ts';

const hasList = (subject: CrudSubject) => subject.has('list');
const WALK_MAX = 1_000;

/** The keys of every page, following `next` or `previous` from this address. */
async function walk(subject: CrudSubject, first: string, direction: 'next' | 'previous'): Promise<{ keys: unknown[]; last: string }> {
  const keys: unknown[] = [];
  let at = first;
  for (let pages = 0; pages < WALK_MAX; pages += 1) {
    const { body } = await subject.expect(200, subject.owner, 'GET', at);
    const page = (body.items as Item[]).map((item) => item[subject.key]);
    keys.push(...(direction === 'next' ? page : page.toReversed()));
    if (body[direction] === null) return { keys, last: at };
    at = body[direction] as string;
  }
  throw new Error(`The list has no end: ${WALK_MAX} pages were read.`);
}

function orderings(subject: CrudSubject): string[] {
  const by = subject.operations.list.ordering?.by ?? [];
  const visible = by.filter((name) => subject.operations.policy.ruleOf(name)?.visibleTo === undefined);
  return ['', ...visible.flatMap((name) => [`&ordering=${name}`, `&ordering=-${name}`])];
}

export const listChecks: readonly CrudCheck[] = [
  {
    name: '13, 14: every ordering is walked completely and without repeats, forward and back',
    appliesTo: hasList,
    async run(subject) {
      const made = (await subject.makeSeveral(5)).map(({ key }) => key);
      for (const ordering of orderings(subject)) {
        const forward = await walk(subject, `?limit=2${ordering}`, 'next');
        const keys = forward.keys.map(String);
        check(new Set(keys).size === keys.length, `Ordered by "${ordering}" the list repeats rows: ${keys.join()}`);
        const missing = made.filter((key) => !keys.includes(key));
        check(missing.length === 0, `Ordered by "${ordering}" the list leaves rows out: ${missing.join()}`);
        const back = await walk(subject, forward.last, 'previous');
        checkEqual(back.keys.map(String), keys.toReversed(), `Walked back by "${ordering}", the rows are others.`);
      }
    },
  },
  {
    name: '16, 17: next keeps the parameters; a cursor that was changed, or belongs to another caller, is refused',
    appliesTo: hasList,
    async run(subject) {
      await subject.makeSeveral(3);
      const { body } = await subject.expect(200, subject.owner, 'GET', '?limit=1');
      const next = String(body.next);
      check(next.startsWith('?') && next.includes('limit=1'), `next is "${next}": not a query string with the parameters of the request.`);
      if (subject.operations.list.page.style !== 'cursor') return;
      const cursor = new URLSearchParams(next).get('cursor') as string;
      const at = Math.floor(cursor.length / 2);
      const changed = `${cursor.slice(0, at)}${cursor[at] === 'A' ? 'B' : 'A'}${cursor.slice(at + 1)}`;
      const refused = async (client: TestClient, text: string) => {
        const answer = await subject.expect(422, client, 'GET', `?limit=1&cursor=${encodeURIComponent(text)}`);
        check(answer.body.code === 'invalid_cursor', `The cursor is refused with ${String(answer.body.code)}.`);
      };
      await refused(subject.owner, changed);
      if (subject.stranger !== undefined) await refused(subject.stranger, cursor);
    },
  },
  {
    name: '21, 22: a limit beyond the maximum, an unknown parameter and an undeclared ordering are 422 and named',
    appliesTo: hasList,
    async run(subject) {
      const { max } = subject.operations.list.page;
      const attempts = [
        'limit=0',
        `limit=${max + 1}`,
        'limit=x',
        'ordering=no_such_name',
        'no_such_name=1',
        'constructor=1',
        '__proto__=1',
      ];
      for (const attempt of attempts) {
        const { body, text } = await subject.expect(422, subject.owner, 'GET', `?${attempt}`);
        const name = attempt.split('=', 1)[0];
        const named = ((body.errors ?? []) as { location: unknown[] }[]).some(
          ({ location }) => location[0] === 'query' && location[1] === name,
        );
        check(named, `?${attempt} is refused without naming the parameter: ${text}`);
      }
    },
  },
  {
    name: '24, 26: every filter on a column finds the row by its value and refuses a value the column cannot hold',
    appliesTo: (subject) => hasList(subject) && subject.has('retrieve'),
    async run(subject) {
      const { key, item } = await subject.make();
      for (const [name, declared] of Object.entries(subject.operations.options.filters ?? {})) {
        const { policy } = subject.operations;
        if (!Array.isArray(declared) || !policy.hasColumn(name) || policy.ruleOf(name)?.visibleTo !== undefined) continue;
        const { kind } = policy.settingsOf(name);
        const garbage = {
          int: 'x',
          bigint: 'x',
          decimal: 'x',
          uuid: 'x',
          bool: 'x',
          timestamp: 'yesterday',
          enum: 'no such value',
        } as const;
        const operator = declared.find((each) => each !== 'isnull') as string | undefined;
        const parameter = (text: string) => (text === 'eq' ? name : `${name}__${text}`);
        const bad = (garbage as Readonly<Record<string, string | undefined>>)[kind];
        if (operator !== undefined && bad !== undefined)
          await subject.expect(422, subject.owner, 'GET', `?${parameter(operator)}=${encodeURIComponent(bad)}`);
        const value = item[name];
        if (!declared.includes('eq') || (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')) continue;
        const found = await walk(subject, `?${name}=${encodeURIComponent(String(value))}`, 'next');
        check(found.keys.map(String).includes(key), `?${name}=${String(value)} does not find the row that has it.`);
      }
    },
  },
  {
    name: '29: more rows need no more statements, expansions included',
    appliesTo: hasList,
    async run(subject) {
      const paths = [...subject.operations.list.expand];
      const expand = paths.length === 0 ? '' : `&expand=${paths.slice(0, 3).join()}`;
      const { max } = subject.operations.list.page;
      const costOf = async () => {
        const { count, result } = await countQueries(() => subject.call(subject.owner, 'GET', `?limit=${Math.min(max, 10)}${expand}`));
        if (result.status === 422 && result.body.code === 'expand_too_costly') return 0;
        check(result.status === 200, `GET ${subject.url()} answered ${result.status}: ${result.text}`);
        return count;
      };
      await subject.makeSeveral(2);
      const few = await costOf();
      await subject.makeSeveral(5);
      const many = await costOf();
      // One more statement counts the rows once the page is full.
      check(many <= few + 1, `The list needed ${few} statements for few rows and ${many} for more.`);
    },
  },
];
