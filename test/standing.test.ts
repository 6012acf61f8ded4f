import { expect, test } from 'vitest';
import { readSources } from './architecture/module-graph.ts';

/** What reads the flag of a user, a membership or a user to decide something. */
const DECIDES = /flagSql\(|\bisActive|\.memberships?\(|\busers\.findById\(|\b(?:user|owner)\??\.is_active\b/;

const FORGETS = 'asks whether a user still exists, to delete what the user had';
const NAMES = 'finds the user that somebody typed or chose';
const OWN_FLAG = 'the flag of a webhook endpoint, not of a user';
const ADMITTED = 'the caller was judged when the request was admitted; a program names the user and the tenant, and a job asks mayAct()';
const SHOWN = 'a relation to a user shows the flag beside the name';
const OWN_USERS = 'better-auth has users, bans and memberships of its own; these statements are its part of the directory';

/** Files outside of auth/ and contrib/accounts that match, and why they need not ask `standings`. */
const ALLOWED: Readonly<Record<string, string>> = {
  'admin/module.ts': FORGETS,
  'admin/serve/views.ts': 'a view of a deactivated user is refused; each of its requests is judged as that user afterwards',
  'app/tenants/tenant-of-member.ts': NAMES,
  'app/declare/standing.ts': 'asks judge(); a deactivated user is not looked up in a tenant',
  'cli/commands/person.ts': NAMES,
  'contrib/apikeys/commands.ts': NAMES,
  'contrib/apikeys/manage/create.ts': 'shown with the key',
  'contrib/apikeys/manage/key-limit.ts': 'counts keys of a deactivated owner, too',
  'contrib/apikeys/resource.ts': 'protects the keys of superusers from other members of staff; the state of a key is shown',
  'contrib/apikeys/rows/store.ts': 'a key and its owner are one statement; state.ts gives the flag to judge()',
  'contrib/apikeys/service/manage-service-users.ts': FORGETS,
  'contrib/apikeys/service/resource.ts': 'shows the role of a service user; its keys are judged with every request',
  'contrib/apikeys/verify/invalidation.ts': FORGETS,
  'contrib/better-auth/invitations.ts': OWN_USERS,
  'contrib/better-auth/kit-plugin.ts': OWN_USERS,
  'contrib/better-auth/migrations/0001_initial.ts': OWN_USERS,
  'contrib/better-auth/module.ts': OWN_USERS,
  'contrib/better-auth/store.ts': OWN_USERS,
  'contrib/better-auth/user-changes.ts': FORGETS,
  'contrib/grants/backends/table-backend.ts': ADMITTED,
  'contrib/grants/caller/caller-subjects.ts': ADMITTED,
  'contrib/grants/grant/follow-rows.ts': ADMITTED,
  'contrib/grants/grant/grant.ts': NAMES,
  'contrib/grants/grant/holdings.ts': ADMITTED,
  'contrib/grants/grant/share.ts': 'a user who is deactivated cannot be chosen for a new grant',
  'contrib/grants/module.ts': FORGETS,
  'contrib/grants/rows/grant-sql.ts': ADMITTED,
  'contrib/grants/rows/granted-condition.ts': ADMITTED,
  'contrib/grants/rows/live-grants.ts': ADMITTED,
  'contrib/grants/rows/permission.ts': ADMITTED,
  'contrib/jwt/jwt-bearer.ts': 'applies the groups of the token to users who may log in; the request is admitted afterwards',
  'contrib/tenants/admin.ts': NAMES,
  'contrib/tenants/commands.ts': NAMES,
  'contrib/tenants/manage/send-invitation.ts': 'the name of the sender, who was asked before, is part of the mail',
  'contrib/webhooks/endpoints/owners.ts': NAMES,
  'contrib/webhooks/endpoints/update-endpoint.ts': OWN_FLAG,
  'contrib/webhooks/endpoints/whose-endpoints.ts': ADMITTED,
  'contrib/webhooks/module.ts': FORGETS,
  'contrib/webhooks/resources/endpoints.ts': OWN_FLAG,
  'contrib/webhooks/schemas.ts': OWN_FLAG,
  'crud/declare/people.ts': SHOWN,
  'crud/live/known-people.ts': 'the state of a row shows whether its owner is active',
  'crud/live/shared-access.ts': 'the same, asked once for all streams',
  'crud/policy/people-join.ts': SHOWN,
  'crud/policy/row-scope.ts': ADMITTED,
  'crud/read/read.ts': SHOWN,
  'portal/links/portal-link.ts': 'no link for a deactivated user; its session is judged with every request',
  'portal/module.ts': FORGETS,
  'http/admit/open-streams.ts': 'compares a looked-up principal with the one that was admitted',
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
