import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Drive, docActions, folderActions, startDrive } from '../../../test/grants/drive.ts';
import type { RuleKind } from '../../auth/rights/rule-result.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { accounts } from '../accounts/index.ts';
import { objectGrants } from './module.ts';

const GROUP = 'staff';
/** What a directory returns by mistake now; empty: what it should. */
const returned = new Map<RuleKind, unknown>();
// oxlint-disable-next-line typescript/no-explicit-any -- a directory written in JavaScript returns anything
const answer = (kind: RuleKind, right: unknown): any => (returned.has(kind) ? returned.get(kind) : right);

const people = accounts({ passwordCost: { logN: 4, r: 8, p: 1 } });
const directories = [
  {
    ...people,
    users: { ...people.users, findById: async (db: never, id: string) => answer('user', await people.users?.findById?.(db, id)) },
  },
  objectGrants({
    objects: [folderActions, docActions],
    isInTenant: () => answer('isInTenant', true),
    groups: {
      groupsOf: async () => [],
      findById: async (_db, id) => (id === GROUP ? { id, name: GROUP, tenantKey: null } : null),
      findByName: async () => null,
      hasActiveMember: async () => answer('hasActiveMember', true),
    },
  }),
];

const WRONG: readonly (readonly [string, unknown])[] = [
  ['undefined', undefined],
  ['an empty string', ''],
  ['a string', 'yes'],
  ['a number', 1],
  ['an empty object', {}],
  ['a list', []],
];

describeDatabases('a directory that returns something else', (database) => {
  let drive: Drive;
  beforeAll(async () => {
    drive = await startDrive({ database: database.db, extra: directories as never });
  });
  afterEach(() => returned.clear());
  afterAll(() => drive.close());

  const grants = (id: string) => database.db.query('select id, subject, actions from grants where object_id = $1 order by id', [id]);
  const share = (id: string, subject: string, set: string) => drive.ask('ann', 'PUT', `folders/${id}/grants`, { subject, set });
  const folder = async () => {
    const { body } = await drive.ask('ann', 'POST', 'folders', { name: 'Plans' });
    return body.id as string;
  };
  const wrong = expect.objectContaining({ status: 500, body: expect.objectContaining({ code: 'invalid_rule' }) });

  describe.each(['user', 'isInTenant'] as const)('%s', (kind) => {
    test.each(WRONG)('%s shares nothing: 500 invalid_rule', async (_name, value) => {
      const id = await folder();
      const before = await grants(id);
      returned.set(kind, value);
      expect(await share(id, `user:${drive.user('bob').id}`, 'viewer')).toEqual(wrong);
      expect(await grants(id)).toEqual(before);
      returned.clear();
      expect((await share(id, `user:${drive.user('bob').id}`, 'viewer')).status).toBeLessThan(300);
    });
  });

  describe('hasActiveMember', () => {
    test.each(WRONG)('%s takes nothing away: 500 invalid_rule', async (_name, value) => {
      const id = await folder();
      expect((await share(id, `group:${GROUP}`, 'manager')).status).toBeLessThan(300);
      const before = (await grants(id)) as { readonly id: string; readonly subject: string }[];
      const own = before.find(({ subject }) => subject.startsWith('user:'));
      returned.set('hasActiveMember', value);
      expect(await drive.ask('ann', 'DELETE', `folders/${id}/grants/${own?.id}`)).toEqual(wrong);
      expect(await grants(id)).toEqual(before);
      returned.clear();
      expect((await drive.ask('ann', 'DELETE', `folders/${id}/grants/${own?.id}`)).status).toBe(204);
    });
  });
});
