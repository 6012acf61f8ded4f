import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp, type KeyApp } from '../../../test/key-app.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { deactivateUser } from '../accounts/users/manage-users.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { createApiKey } from './manage/create.ts';
import { revokeApiKey } from './manage/revoke.ts';
import { rotateApiKey } from './manage/rotate.ts';
import { updateApiKey } from './manage/update.ts';
import { verifyApiKey } from './verify/verify.ts';

describeDatabases(
  'ids that programs give',
  (database) => {
    let kit: KeyApp;
    beforeAll(async () => {
      kit = await startKeyApp(database.db, { keys: { cache: { maxAgeMs: 60_000 }, maxKeysPerOwner: 2 } });
    });
    afterAll(() => kit.app.close());

    test.each(['nobody', '', '7', '01890000-0000-7000-8000-000000000000', "'; drop table users"])(
      'an invalid owner %j is not found, and the transaction goes on',
      async (user) => {
        await kit.db.transaction(async (tx) => {
          await expect(createApiKey(tx, { user, name: 'CI', scopes: [] })).rejects.toMatchObject({ status: 404, code: 'owner_not_found' });
          expect(await tx.query('select 1 as one')).toHaveLength(1);
        });
      },
    );

    test.each(['nothing', '', '7', '01890000-0000-7000-8000-000000000000'])('an invalid key id %j is not found', async (id) => {
      for (const change of [() => revokeApiKey(kit.db, id), () => rotateApiKey(kit.db, id), () => updateApiKey(kit.db, id, { name: 'x' })])
        await expect(change()).rejects.toMatchObject({ status: 404, code: 'api_key_not_found' });
    });

    test('a key’s id is the same in upper case', async () => {
      const { id, raw } = await kit.key(await kit.user('upper'));
      await updateApiKey(kit.db, id.toUpperCase(), { name: 'renamed' });
      expect((await verifyApiKey(kit.db, raw))?.apiKey.name).toBe('renamed');
      await revokeApiKey(kit.db, id.toUpperCase());
      expect(await verifyApiKey(kit.db, raw)).toBeNull();
    });

    // SQLite compares text: there an id in upper case is another one, which no user has.
    if (database.dialect === 'sqlite') return;

    test('however the owner’s id was written, the key is the owner’s: listed, counted, and gone with the owner', async () => {
      const ada = await kit.user('ada');
      const { apiKey, raw } = await createApiKey(kit.db, { user: ada.id.toUpperCase(), name: 'CI', scopes: [] });
      expect(apiKey.owner_id).toBe(ada.id);
      expect((await kit.call('GET', '/v1/api-keys', { 'x-act-as': 'ada' })).body).toMatchObject({ count: 1 });
      await kit.key(ada);
      await expect(createApiKey(kit.db, { user: ada.id.toUpperCase(), name: 'third', scopes: [] })).rejects.toMatchObject({
        code: 'key_limit_reached',
      });
      expect((await verifyApiKey(kit.db, raw))?.user).toMatchObject({ id: ada.id });
      await deactivateUser(kit.db, ada.id, accountsOf(kit.app.db).management(null));
      expect(await verifyApiKey(kit.db, raw), 'not even from the cache').toBeNull();
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);
