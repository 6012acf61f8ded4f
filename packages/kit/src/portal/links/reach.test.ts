import { expect, test } from 'vitest';
import { type AppCredentials, LinkReach } from './reach.ts';

const WHOLE = { pages: [], manage: true };
const [key, partner, jwt] = [{ name: 'api_key' }, { name: 'partner' }, { name: 'jwt', issuers: ['https://id.example.com'] }];
const session = { name: 'session' };
/** Accepts its credential only where a route names it. */
const link = { name: 'portal_session', callsRoute: () => true };

/** The names of the credentials of the operations that a link reaches, of operations that accept these. */
function reached(app: AppCredentials, accepting: readonly (readonly { readonly name: string }[])[]): readonly string[] {
  const operations = accepting.map((authenticators) => ({ method: 'GET', authenticators }));
  const reach = new LinkReach();
  const pages = [{ page: { name: 'things' }, operations }];
  reach.learn(pages, app);
  return operations.filter((each) => reach.has(each, WHOLE)).map(({ authenticators }) => authenticators.map(({ name }) => name).join(' '));
}

test('where people log in elsewhere, an operation that names a credential of programs is closed to links', () => {
  const app = { authenticators: [key, partner, jwt, link], login: null };
  expect(reached(app, [[key, partner, jwt], [partner], [key], [key, partner], [jwt], [partner, jwt], []])).toEqual([
    'api_key partner jwt',
    'jwt',
    'partner jwt',
  ]);
});

test('where nothing but keys of programs is known, what accepts all of them is open: the link says who the person is', () => {
  expect(reached({ authenticators: [key, partner, link], login: null }, [[key, partner], [partner], [key]])).toEqual(['api_key partner']);
  expect(reached({ authenticators: [key, link], login: null }, [[key]])).toEqual(['api_key']);
});

test('where the app has a login, what accepts it is open, and nothing else', () => {
  const app = { authenticators: [session, key, partner, jwt, link], login: ['session'] };
  expect(reached(app, [[session, key, partner, jwt], [session], [key, partner, jwt], [jwt], [partner]])).toEqual([
    'session api_key partner jwt',
    'session',
  ]);
});
