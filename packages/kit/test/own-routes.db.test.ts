import { expect, test } from 'vitest';
import { openWrites } from '../src/app/check/open-writes.ts';
import { unboundedLists } from '../src/app/check/unbounded-lists.ts';
import { AccountController, accounts } from '../src/contrib/accounts/index.ts';
import { ApiKeyController, apiKeys } from '../src/contrib/apikeys/index.ts';
import { audit, AuditController } from '../src/contrib/audit/index.ts';
import { objectActions, objectGrants, sharing } from '../src/contrib/grants/index.ts';
import { JobController, jobs } from '../src/contrib/jobs/index.ts';
import { WebhookEndpointController, webhooks } from '../src/contrib/webhooks/index.ts';
import { CrudController, resource } from '../src/crud/index.ts';
import { createTable, migration, model, t } from '../src/db/index.ts';
import { listWarnings } from '../src/crud/inspect/list-warnings.ts';
import { HealthController } from '../src/middleware/health.ts';
import { isAuthenticated } from '../src/permissions/built-ins.ts';
import { testApp } from '../src/testing/test-app.ts';

const columns = { id: t.uuidv7().pk(), owner_id: t.text(50).readOnly(), title: t.text(50) };
const papers = model('papers', columns, { indexes: [{ columns: ['owner_id'] }] });
const paperActions = objectActions(papers, { actions: ['view', 'share'], owner: 'owner_id' });
class PaperController extends sharing(CrudController(resource(papers, { owner: 'owner_id' }), { permission: isAuthenticated })) {}

test('kit doctor has nothing to say about the routes of the toolkit', async () => {
  await using app = await testApp({
    modules: [
      accounts(),
      audit(),
      apiKeys(),
      webhooks(),
      jobs(),
      objectGrants({ objects: [paperActions] }),
      {
        name: 'papers',
        models: [papers],
        migrations: [migration('0001_initial', [createTable('papers', columns, { indexes: [{ columns: ['owner_id'] }] })])],
      },
    ],
    mount: {
      '/v1': {
        '/auth': AccountController,
        '/audit': AuditController,
        '/api-keys': ApiKeyController,
        '/webhooks': WebhookEndpointController,
        '/jobs': JobController,
        '/papers': PaperController,
        '/health': HealthController,
      },
    },
  });
  expect(app.app.routes.length).toBeGreaterThan(30);
  expect(unboundedLists(app.app.routes)).toEqual([]);
  expect(openWrites(app.app.routes)).toEqual([]);
  expect(await listWarnings(app.app)).toEqual([]);
});
