import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { admin } from '../../admin/index.ts';
import { AccountController, accounts } from '../../contrib/accounts/index.ts';
import { ApiKeyController, apiKeys } from '../../contrib/apikeys/index.ts';
import { audit, AuditController } from '../../contrib/audit/index.ts';
import { objectGrants } from '../../contrib/grants/index.ts';
import { job, JobController, jobs, runDueJobs, startJob } from '../../contrib/jobs/index.ts';
import { mcp } from '../../contrib/mcp/index.ts';
import { diskStore, UploadController, uploads } from '../../contrib/uploads/index.ts';
import { WebhookEndpointController, webhooks } from '../../contrib/webhooks/index.ts';
import { createTable, insert, migration, model, t } from '../../db/index.ts';
import { Controller } from '../../http/compile/controller.ts';
import { route } from '../../http/declare/route.ts';
import { requestLog } from '../../middleware/index.ts';
import { allowAny } from '../../permissions/index.ts';
import { describeDatabases, testApp, type LogRecord, type TestApp } from '../../testing/index.ts';

const secret = z.string().meta({ 'x-sensitive': true });
const doors = model('doors', { id: t.uuidv7().pk(), name: t.text(40), code: t.text(40).sensitive(), opened_at: t.timestamp() });
const Opening = z.object({
  door: z.string(),
  at: z.iso.datetime().optional(),
  // Each of these is the name of a member of the toolkit's own records.
  code: secret,
  status: secret.optional(),
  path: secret.optional(),
  keys: z.array(z.object({ number: secret, label: z.string() })).default([]),
});
const body = {
  door: 'back',
  at: '2026-01-02T03:04:05Z',
  code: 's3cret-1',
  status: 's3cret-2',
  keys: [{ number: 's3cret-3', label: 'old' }],
};

class DoorController extends Controller {
  open = route.post('/open', { permission: allowAny, csrf: false, body: Opening, response: Opening }, (context) => {
    const { body: given, log } = context;
    log.info({ body: given, request: { deep: [given] }, keys: given.keys[0] }, 'given');
    log.info(given, 'whole');
    log.info({ copy: { ...given, note: 'a copy' }, part: { door: given.door, code: given.code } }, 'copies');
    log.info({ code: 'E-17', status: 'open', path: '/doors', keys: 3, number: 4, error: { code: 'jammed', number: 5 } }, 'other');
    return given;
  });
  row = route.get('/row', { permission: allowAny }, async ({ db, log, clock }) => {
    const row = await insert(db, doors, { name: 'front', code: 's3cret-4', opened_at: clock.now() });
    log.info({ row, some: { name: row.name, code: row.code } }, 'row');
  });
}

const breaking = job('doors.break', {
  input: z.object({ door: z.string() }),
  retry: { attempts: 1 },
  run: ({ log }) => {
    log.info({ code: 'E-18' }, 'in a job');
    throw new Error('jammed');
  },
});

describeDatabases('records of the log, with every module mounted', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'kit-masking-'));
    kit = await testApp({
      database: database.db,
      middleware: [requestLog()],
      modules: [
        accounts({ passwordCost: { logN: 4, r: 8, p: 1 }, signUp: 'invitation' }),
        apiKeys(),
        audit(),
        webhooks(),
        jobs({ jobs: [breaking] }),
        uploads({ store: diskStore({ folder }) }),
        objectGrants({ objects: [] }),
        mcp({ include: ['doors'] }),
        admin(),
        { name: 'doors', models: [doors], migrations: [migration('0001_doors', [createTable('doors', doors.columns)])] },
      ],
      mount: {
        '/v1': {
          '/account': AccountController,
          '/keys': ApiKeyController,
          '/audit': AuditController,
          '/jobs': JobController,
          '/uploads': UploadController,
          '/webhooks': WebhookEndpointController,
          '/doors': DoorController,
        },
      },
    });
  });
  afterAll(() => kit.close());

  const recordOf = (message: string): LogRecord | undefined => kit.records.findLast(({ msg }) => msg === message);

  test('the toolkit’s own members are shown, whatever schemas call sensitive', async () => {
    const wrong = await kit.inject({
      method: 'POST',
      url: '/v1/account/login',
      payload: { login: 'ann', password: 's3cret-5', code: '123456' },
    });
    expect(wrong.statusCode).toBe(401);
    expect(recordOf('POST /v1/account/login 401')).toMatchObject({
      code: 'invalid_credentials',
      method: 'POST',
      path: '/v1/account/login',
      status: 401,
    });
    expect((await kit.inject('/v1/jobs')).statusCode).toBe(401);
    expect((await kit.inject('/v1/nowhere')).statusCode).toBe(404);
    expect(recordOf('GET /v1/jobs 401')).toMatchObject({ code: 'not_authenticated', route: '/v1/jobs' });
    await database.db.transaction((tx) => startJob(tx, breaking, { door: 'back' }));
    await runDueJobs(database.db);
    expect(recordOf('a job failed')).toMatchObject({ code: 'job_failed', job: 'doors.break' });
    expect(recordOf('in a job')).toMatchObject({ code: 'E-18' });
    expect(JSON.stringify(kit.records)).not.toContain('[masked]');
  });

  test('an input shows nothing of what its schema marks: itself, its parts and its copies', async () => {
    expect((await kit.inject({ method: 'POST', url: '/v1/doors/open', payload: body })).statusCode).toBe(200);
    const shown = {
      door: 'back',
      at: '2026-01-02T03:04:05Z',
      code: '[masked]',
      status: '[masked]',
      keys: [{ number: '[masked]', label: 'old' }],
    };
    expect(recordOf('given')).toMatchObject({ body: shown, request: { deep: [shown] }, keys: shown.keys[0] });
    expect(recordOf('whole')).toMatchObject(shown);
    expect(recordOf('copies')).toMatchObject({ copy: { ...shown, note: 'a copy' }, part: { door: 'back', code: '[masked]' } });
    // Only the names are the same.
    expect(recordOf('other')).toMatchObject({
      code: 'E-17',
      status: 'open',
      path: '/doors',
      keys: 3,
      number: 4,
      error: { code: 'jammed', number: 5 },
    });
    expect(recordOf('POST /v1/doors/open 200')).toMatchObject({ status: 200, path: '/v1/doors/open' });
  });

  test('a row shows no sensitive column', async () => {
    expect((await kit.inject('/v1/doors/row')).statusCode).toBe(204);
    expect(recordOf('row')).toMatchObject({
      row: { name: 'front', code: '[masked]', opened_at: expect.stringContaining('T') as unknown },
      some: { name: 'front', code: '[masked]' },
    });
  });

  test('no secret is in any record', () => {
    expect(JSON.stringify(kit.records)).not.toContain('s3cret');
  });
});
