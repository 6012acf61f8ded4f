import { expect, test } from 'vitest';
import { readSources } from './architecture/module-graph.ts';

/** What reads the flag of a user, a membership or a user to decide something. */
const DECIDES = /flagSql\(|\bisActive|\.memberships?\(|\busers\.findById\(/;

const FORGETS = 'asks whether a user still exists, to delete what the user had';
const NAMES = 'finds the user that somebody typed or chose';
const OWN_FLAG = 'the flag of a webhook endpoint, not of a user';
const OWN_USERS = 'better-auth has users, bans and memberships of its own; these statements are its part of the directory';

/** Files outside of auth/ and contrib/accounts that match, and why they need not ask `standings`. */
const ALLOWED: Readonly<Record<string, string>> = {
  'admin/module.ts': FORGETS,
  'contrib/apikeys/admin.ts': 'protects the keys of superusers from other members of staff',
  'contrib/apikeys/commands.ts': NAMES,
  'contrib/apikeys/verify/invalidation.ts': FORGETS,
  'contrib/apikeys/rows/store.ts': 'a key and its owner are one statement; state.ts gives the flag to judge()',
  'contrib/better-auth/invitations.ts': OWN_USERS,
  'contrib/better-auth/kit-plugin.ts': OWN_USERS,
  'contrib/better-auth/migrations/0001_initial.ts': OWN_USERS,
  'contrib/better-auth/module.ts': OWN_USERS,
  'contrib/better-auth/store.ts': OWN_USERS,
  'contrib/better-auth/user-changes.ts': FORGETS,
  'contrib/grants/grant/grant.ts': NAMES,
  'contrib/grants/module.ts': FORGETS,
  'contrib/grants/grant/share.ts': 'a user who is deactivated cannot be chosen for a new grant',
  'contrib/webhooks/admin/place.ts': NAMES,
  'contrib/webhooks/controller.ts': OWN_FLAG,
  'contrib/webhooks/endpoints/update-endpoint.ts': OWN_FLAG,
  'contrib/webhooks/module.ts': FORGETS,
  'contrib/webhooks/schemas.ts': OWN_FLAG,
};

test('whether a person may still act is decided in auth/rights/standing.ts, and every exception has a reason', () => {
  const source = 'packages/kit/src/';
  const found = [...readSources().values()]
    .filter(({ path }) => path.startsWith(source))
    .map(({ path, text }) => ({ path: path.slice(source.length), text }))
    .filter(({ path }) => !/\.test\.ts$|^auth\/|^contrib\/accounts\//.test(path))
    .filter(({ text }) => DECIDES.test(text));
  expect(found.map(({ path }) => path).toSorted()).toEqual(Object.keys(ALLOWED).toSorted());
});
