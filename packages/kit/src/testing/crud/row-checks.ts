import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { sample } from '../sample/sample.ts';
import type { TestClient } from '../test-callers.ts';
import { anonymised, type Answer, check, checkEqual, type CrudCheck, type CrudSubject } from './subject.ts';

const COLLECTION_READS: ReadonlySet<string> = new Set(['list', 'export', 'stats', 'meta']);
const KEYED: ReadonlySet<string> = new Set(['retrieve', 'update', 'partialUpdate', 'destroy', 'restore', 'transitions']);

/** The generic operations on one row: where they are, and a body they would accept. */
async function keyedCalls(subject: CrudSubject): Promise<{ route: CompiledRoute; rest: (key: string) => string; payload: unknown }[]> {
  const calls = [];
  for (const route of subject.routes) {
    const at = route.path.indexOf('/:id');
    if (at === -1 || !(KEYED.has(route.field) || route.field in subject.operations.transitionRules)) continue;
    const payload =
      route.body === undefined
        ? undefined
        : route.method === 'PUT' && subject.has('create')
          ? { ...noChildren(subject), ...(await subject.input()) }
          : sample(route.body.json as never, { optional: 'none' });
    calls.push({ route, rest: (key: string) => `/${key}${route.path.slice(at + '/:id'.length)}`, payload });
  }
  return calls;
}

/** PUT requires the children that it would delete: none of them. */
function noChildren({ operations }: CrudSubject): Record<string, unknown> {
  return Object.fromEntries(operations.nested.filter(({ missing }) => missing === 'delete').map(({ name }) => [name, []]));
}

/** Reading operations on the collection. */
function collectionReads(subject: CrudSubject): CompiledRoute[] {
  return [...subject.routes].filter(({ field }) => COLLECTION_READS.has(field));
}

const hasStranger = (subject: CrudSubject) => subject.stranger !== undefined;

export const rowChecks: readonly CrudCheck[] = [
  {
    name: '1: whatever a stranger does to a row, it gets the answer for an unknown key, and the row stays as it is',
    appliesTo: (subject) => hasStranger(subject) && subject.has('retrieve'),
    async run(subject) {
      const { key } = await subject.make();
      const before = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      for (const { route, rest, payload } of await keyedCalls(subject)) {
        const ask = (id: string) => subject.call(subject.stranger as TestClient, route.method, rest(id), payload, subject.anyVersion);
        const unknown = await Promise.all(subject.unknownKeys.map(ask));
        const answer = await ask(key);
        for (const each of unknown)
          check(
            anonymised(each) === anonymised(answer),
            `${route.method} ${route.path} tells a stranger that the row exists: ${answer.status} ${answer.text} for the row, ${each.status} ${each.text} for an unknown key.`,
          );
        check(answer.status === 404 || answer.status === 403, `${route.method} ${route.path} answered ${answer.status} to a stranger.`);
      }
      const after = await subject.expect(200, subject.owner, 'GET', `/${key}`);
      check(before.text === after.text, `A stranger changed the row: ${before.text} became ${after.text}.`);
    },
  },
  {
    name: '2: a new row of the owner changes nothing in what a stranger reads: lists, counts, exports, statistics, metadata',
    appliesTo: hasStranger,
    async run(subject) {
      const stranger = subject.stranger as TestClient;
      const reads = collectionReads(subject).map(({ path }) => path.slice(path.lastIndexOf('/')));
      const isRoot = (path: string) => subject.url().endsWith(path);
      const see = async (): Promise<(readonly unknown[])[]> => {
        const seen: (readonly unknown[])[] = [];
        for (const path of reads) {
          const answer: Answer = await subject.call(stranger, 'GET', isRoot(path) ? '' : path);
          seen.push([path, anonymised(answer), answer.headers['x-total-count']]);
        }
        return seen;
      };
      const before = await see();
      const { key, item } = await subject.make();
      checkEqual(await see(), before, `A stranger can tell that the owner made a row.`);
      if (subject.has('list') && subject.operations.list.search !== undefined) await searchFindsNothing(subject, stranger, item, key);
    },
  },
  {
    name: '3: key, owner, tenant and version are not taken from a client; the row gets the caller’s',
    appliesTo: (subject) => subject.has('create'),
    async run(subject) {
      const { policy } = subject.operations;
      const { version } = policy.options;
      const kept = [policy.owner?.column, policy.tenant?.column, version as string | undefined].filter((name) => name !== undefined);
      for (const name of kept) {
        const answer = await subject.expect(422, subject.owner, 'POST', '', { ...(await subject.input()), [name]: 'x' });
        check(
          ((answer.body.errors ?? []) as { location: unknown[]; code: string }[]).some(
            ({ location, code }) => location[1] === name && code === 'unknown_field',
          ),
          `A body with ${name} is refused without naming it: ${answer.text}`,
        );
      }
      const { item } = await subject.make();
      const owner = policy.owner?.column;
      if (owner !== undefined && owner in item)
        check(String(item[owner]) === subject.owner.user.id, `The new row belongs to ${String(item[owner])}, not to its maker.`);
    },
  },
  {
    name: '6: without a tenant every operation is 403 tenant_required',
    appliesTo: ({ tenantless, operations: { policy } }) =>
      tenantless !== undefined && policy.tenant !== undefined && policy.tenant.none === undefined && policy.tenant.unless === undefined,
    async run(subject) {
      const { key } = await subject.make();
      const tenantless = subject.tenantless as TestClient;
      for (const { route, rest, payload } of await keyedCalls(subject)) {
        const answer = await subject.expect(403, tenantless, route.method, rest(key), payload, subject.anyVersion);
        // A path names a tenant always.
        const isRefused = ['tenant_required', 'permission_denied', 'not_a_member'].includes(answer.body.code as string);
        check(isRefused, `${route.method} ${route.path} answered ${answer.text}`);
      }
      if (subject.has('list')) await subject.expect(403, tenantless, 'GET', '');
      if (subject.has('create')) await subject.expect(403, tenantless, 'POST', '', await subject.input());
    },
  },
  {
    name: 'rows of an owner are for callers who are known: without credentials every operation is 401',
    appliesTo: (subject) => subject.operations.policy.owner !== undefined && subject.operations.policy.options.anonymous === undefined,
    async run(subject) {
      const { key } = await subject.make();
      for (const { route, rest, payload } of await keyedCalls(subject))
        await subject.expect(401, null, route.method, rest(key), payload, subject.anyVersion);
      for (const { path } of collectionReads(subject)) {
        const last = path.slice(path.lastIndexOf('/'));
        await subject.expect(401, null, 'GET', subject.url().endsWith(last) ? '' : last);
      }
      if (subject.has('create')) await subject.expect(401, null, 'POST', '', await subject.input());
    },
  },
];

/** A word of the owner's row finds nothing more for a stranger. */
async function searchFindsNothing(subject: CrudSubject, stranger: TestClient, item: Readonly<Record<string, unknown>>, key: string) {
  const columns = subject.operations.list.search;
  for (const name of Array.isArray(columns) ? columns : []) {
    const text = item[name];
    if (typeof text !== 'string' || text.trim() === '') continue;
    const answer = await subject.call(stranger, 'GET', `?search=${encodeURIComponent(text.slice(0, 100))}`);
    check(!answer.text.includes(key), `A search shows a stranger the row of the owner: ${answer.text}`);
  }
}
