import type { CompiledRoute } from '../../http/exchange/compiled-route.ts';
import { sample } from '../sample/sample.ts';
import type { TestClient } from '../test-callers.ts';
import { anonymised, type Answer, check, type CrudCheck, type CrudSubject } from './subject.ts';

const hasTenant = ({ operations }: CrudSubject) => operations.policy.tenant !== undefined;

/** One request of a route: where it is for a row, and a body that the route would accept. */
interface Call {
  readonly route: CompiledRoute;
  readonly rest: (key: string) => string;
  readonly payload: unknown;
}

/** A request of every route of the controller, generic or not. */
async function callsOf(subject: CrudSubject): Promise<readonly Call[]> {
  const calls: Call[] = [];
  for (const route of subject.routes) {
    const rest = subject.restOf(route);
    const params = sample((route.params?.json ?? { type: 'object' }) as never, { optional: 'none' }) as Readonly<
      Record<string, string | number>
    >;
    const ofKey = (key: string) =>
      rest.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(name === 'id' ? key : String(params[name] ?? 'x')));
    calls.push({ route, rest: ofKey, payload: await payloadOf(subject, route) });
  }
  return calls;
}

async function payloadOf(subject: CrudSubject, route: CompiledRoute): Promise<unknown> {
  if (route.body === undefined) return undefined;
  if (route.field === 'create' || route.field === 'update') return subject.has('create') ? subject.input() : {};
  if (route.field === 'bulkCreate') return { items: [await subject.input()] };
  return sample(route.body.json as never, { optional: 'none' });
}

export const tenantChecks: readonly CrudCheck[] = [
  {
    name: 'another tenant sees nothing on any route: no response contains the row, and none differs from that for an unknown key',
    appliesTo: (subject) => subject.stranger !== undefined && hasTenant(subject),
    async run(subject) {
      const { key } = await subject.make();
      const stranger = subject.stranger as TestClient;
      const before = await seenByOwner(subject, key);
      for (const { route, rest, payload } of await callsOf(subject)) {
        // A stream does not end; what it may send is decided by the list.
        if (route.kind === 'stream') continue;
        const ask = (id: string) => subject.call(stranger, route.method, rest(id), payload, subject.anyVersion);
        const found = await ask(key);
        check(!found.text.includes(key), `${route.method} ${route.path} shows another tenant the row: ${found.status} ${found.text}`);
        if (rest(key) === rest('')) continue;
        const unknown = await ask(subject.unknownKeys[0] as string);
        check(
          anonymised(found) === anonymised(unknown),
          `${route.method} ${route.path} tells another tenant that the row exists: ${found.status} ${found.text} for the row, ${unknown.status} ${unknown.text} for an unknown key.`,
        );
      }
      check((await seenByOwner(subject, key)) === before, 'Another tenant changed the row.');
    },
  },
  {
    name: 'a caller who names the tenant of others is rejected on every route, as one who names a tenant that does not exist',
    appliesTo: (subject) => subject.intruder !== undefined && hasTenant(subject),
    async run(subject) {
      const { key } = await subject.make();
      const before = await seenByOwner(subject, key);
      for (const { route, rest, payload } of await callsOf(subject)) {
        const ask = (client: TestClient): Promise<Answer> => subject.call(client, route.method, rest(key), payload, subject.anyVersion);
        const found = await ask(subject.intruder as TestClient);
        check(
          found.status >= 400,
          `${route.method} ${route.path} accepts the tenant of others, whose member the caller is not: ${found.status} ${found.text}`,
        );
        if (subject.lost === undefined) continue;
        const unknown = await ask(subject.lost);
        check(
          anonymised(found) === anonymised(unknown),
          `${route.method} ${route.path} tells that the tenant exists: ${found.status} ${found.text}, ${unknown.status} ${unknown.text} for one that does not.`,
        );
      }
      check((await seenByOwner(subject, key)) === before, 'A caller who is not a member changed the row.');
    },
  },
];

async function seenByOwner(subject: CrudSubject, key: string): Promise<string> {
  return subject.has('retrieve') ? (await subject.expect(200, subject.owner, 'GET', `/${key}`)).text : '';
}
