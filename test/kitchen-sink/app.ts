import { z } from 'zod';
import { type App, createApp, isAuthenticated, type Module } from 'kit';
import { admin } from 'kit/admin';
import { AccountController, accounts } from 'kit/contrib/accounts';
import { ApiKeyController, ApiKeyRateThrottle, apiKeys } from 'kit/contrib/apikeys';
import { audit, AuditController } from 'kit/contrib/audit';
import { objectGrants } from 'kit/contrib/grants';
import { job, JobController, jobs } from 'kit/contrib/jobs';
import { diskStore, UploadController, uploads } from 'kit/contrib/uploads';
import { eventType, URLPolicy, WebhookEndpointController, webhooks } from 'kit/contrib/webhooks';
import { CrudController } from 'kit/crud';
import {
  deprecation,
  HealthController,
  paginationHeaders,
  requestId,
  responseCache,
  responseVersions,
  securityHeaders,
  serverTiming,
} from 'kit/middleware';
import { clientThrottle } from 'kit/throttle';
import {
  deskModule,
  FirmController,
  firmResource,
  LineController,
  PartialController,
  TicketController,
} from '../../packages/kit/test/crud/desk.ts';
import {
  CommentController,
  DocController,
  docActions,
  driveTables,
  folderActions,
  FolderController,
} from '../../packages/kit/test/grants/drive.ts';
import { ThingController, thingErrors } from './things.ts';

const counting = job('counting', {
  input: z.object({ to: z.int().min(1).max(100) }),
  run: async (context) => {
    for (let done = 1; done <= 3; done += 1) await context.progress(done / 3);
  },
});
const thingMoved = eventType('thing.moved', z.strictObject({ id: z.uuid(), to: z.string() }), { description: 'A thing was moved.' });

class FirmFeedController extends CrudController(firmResource, {
  permission: isAuthenticated,
  filters: { name: ['eq', 'contains'] },
  ordering: { by: ['name'] },
  live: true,
}) {}

class PictureController extends UploadController {
  static override readonly tags = ['pictures'];
  static override readonly policy = { contentTypes: ['image/*', 'text/plain'], bytesMax: 50_000_000 };
}
const tables: Module = { name: 'desk', models: deskModule.models ?? [], migrations: deskModule.migrations ?? [] };
const things: Module = { name: 'things', errors: thingErrors };

/** Every feature of the toolkit in one application, for tools that read its document and clients that call it. */
export function kitchenSink({ folder, database = 'sqlite::memory:' }: { readonly folder: string; readonly database?: string }): App {
  return createApp({
    title: 'Kitchen sink',
    version: '3.2.1',
    description: 'Every feature of the toolkit.',
    database,
    log: { level: 'silent' },
    tenant: () => 'north',
    modules: [
      accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
      audit(),
      apiKeys(),
      webhooks({ eventTypes: [thingMoved], urlPolicy: URLPolicy({ allowHttp: true, allowPrivateNetworks: true }) }),
      jobs({ jobs: [counting], worker: true }),
      uploads({ store: diskStore({ folder }) }),
      objectGrants({ objects: [folderActions, docActions], isInTenant: () => true }),
      tables,
      driveTables,
      things,
      admin(),
    ],
    middleware: [
      requestId(),
      securityHeaders(),
      serverTiming(),
      deprecation(),
      paginationHeaders(),
      responseCache({ routes: ({ controller, field }) => controller === 'ThingController' && field === 'report' && { maxAgeMs: 1000 } }),
      responseVersions({ versions: [{ version: '2' }, { version: '1', changes: [] }] }),
    ],
    throttles: [clientThrottle('100000/min'), ApiKeyRateThrottle('100000/min')],
    mount: {
      '/v1': {
        '/tickets': TicketController,
        '/partial': PartialController,
        '/firms': FirmController,
        '/feed': FirmFeedController,
        '/lines': LineController,
        '/folders': FolderController,
        '/docs': DocController,
        '/comments': CommentController,
        '/things': ThingController,
        '/pictures': PictureController,
        '/api-keys': ApiKeyController,
        '/webhooks': WebhookEndpointController,
        '/jobs': JobController,
        '/account': AccountController,
        '/audit': AuditController,
      },
      '/': { '/health': HealthController },
    },
  });
}
