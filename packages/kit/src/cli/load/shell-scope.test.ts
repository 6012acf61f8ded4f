import { expect, test } from 'vitest';
import { createApp, migrateApp } from '../../app/index.ts';
import { accounts } from '../../contrib/accounts/index.ts';
import { ApiKeyController, apiKeys } from '../../contrib/apikeys/index.ts';
import { audit, AuditController } from '../../contrib/audit/index.ts';
import { jobs } from '../../contrib/jobs/index.ts';
import { CrudController, resource } from '../../crud/index.ts';
import { createTable, migration, model, t } from '../../db/index.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { shellScope } from './shell-scope.ts';

const printJobs = model('print_jobs', { id: t.uuidv7().pk(), owner_id: t.uuid().readOnly() });
const notes = model('notes', { id: t.uuidv7().pk() });
const tables = [printJobs, notes].map(({ name, columns }) => createTable(name, columns));
const noteResource = resource(notes, { unscoped: true });
class PrintJobs extends CrudController(resource(printJobs, { name: 'api_key', owner: 'owner_id' }), { permission: isAuthenticated }) {}

async function scopeOf(mount: Record<string, typeof PrintJobs | typeof ApiKeyController | typeof AuditController>) {
  const own = { name: 'own', models: [printJobs, notes], migrations: [migration('0001_initial', tables)], resources: [noteResource] };
  const modules = [accounts(), apiKeys(), jobs(), audit(), own];
  const app = createApp({ database: 'sqlite::memory:', modules, mount: { '/v1': mount }, log: { level: 'silent' } });
  await migrateApp(app);
  return { app, scope: shellScope(await app.ready()) };
}

test('resources of the application come first, those of modules are there when a controller offers them', async () => {
  const { app, scope } = await scopeOf({ '/api-keys': ApiKeyController, '/audit': AuditController });
  expect(Object.keys(scope.resources)).toEqual(['note', 'api_key', 'audit_entry']);
  expect(Object.keys(await scope.as(null))).toEqual(['note', 'api_key', 'audit_entry']);
  expect(Object.keys(await scope.as(null, { audience: 'staff' }))).toEqual(['api_key', 'audit_entry']);
  await app.close();
});

test('a resource of the application is not replaced by that of a module with the same name', async () => {
  const { app, scope } = await scopeOf({ '/print-jobs': PrintJobs });
  expect(Object.entries(scope.resources).map(([name, { model: of }]) => [name, of.name])).toEqual([
    ['api_key', 'print_jobs'],
    ['note', 'notes'],
  ]);
  await app.close();
});
