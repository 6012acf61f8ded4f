import { Client, StreamableHTTPClientTransport, type Progress } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { accounts, createUser } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey, revokeApiKey } from '../../src/contrib/apikeys/index.ts';
import { accepted, acceptsJob, job, JobController, jobs, startJob } from '../../src/contrib/jobs/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import type { Exchange } from '../../src/http/exchange/exchange.ts';
import { Controller, route } from '../../src/http/index.ts';
import { openStreamsOf } from '../../src/http/admit/open-streams.ts';
import { exchangeOf } from '../../src/http/serve/serve-route.ts';
import { INPUT_LIMITS } from '../../src/options/input-limits.ts';
import { hasScopes } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';

/** Each step of the job waits until the test lets it go on, so that no report can be missed. */
let steps: PromiseWithResolvers<void>[] = [];
const report = job('reports.make', {
  input: z.object({ fails: z.boolean().optional() }),
  result: z.object({ pages: z.int() }),
  retry: { attempts: 1 },
  async run({ input, progress }) {
    for (const [index, percent] of [25, 60].entries()) {
      await progress(percent, `step ${index + 1}`);
      await steps[index]?.promise;
    }
    if (input.fails === true) throw new Error('out of paper');
    return { pages: 3 };
  },
});

let calls: Exchange[] = [];

class ReportController extends Controller {
  make = route.post(
    '/',
    {
      ...acceptsJob,
      permission: hasScopes(),
      scope: 'reports:write',
      body: z.object({ fails: z.boolean().optional() }),
      tool: { name: 'make_report' },
      summary: 'Make a report of all orders',
    },
    ({ db, body, user, request }) => {
      calls.push(exchangeOf(request));
      return db.transaction(async (tx) => accepted(await startJob(tx, report, body, { owner: user.id })));
    },
  );
}

describeDatabases('the progress of a job that a tool has started', (database) => {
  let kit: TestApp;
  let url: URL;
  const keys: Record<string, string> = {};

  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [accounts(), apiKeys(), jobs({ jobs: [report], worker: true, pollIntervalMs: 50 }), mcp({ include: [JobController] })],
      mount: { '/v1': { '/reports': ReportController, '/jobs': JobController } },
    });
    const user = await createUser(kit.app.db, { username: 'ada' });
    for (const [name, scopes] of [
      ['reader', ['reports:*', 'jobs:read']],
      ['writer', ['reports:*']],
      ['manager', ['reports:*', 'jobs:*']],
    ] as const)
      keys[name] = (await createApiKey(kit.app.db, { user, name, scopes: [...scopes] })).raw;
    url = new URL('/mcp', await kit.listen());
  });
  afterAll(() => kit.close());

  async function make(who: string, mode: 'legacy' | 'auto', fails = false, onStep?: (message: string | undefined) => unknown) {
    calls = [];
    steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${keys[who]}` } } }));
    const reports: Progress[] = [];
    const onprogress = (progress: Progress): void => {
      reports.push(progress);
      // The next step begins when this one was reported.
      if (onStep !== undefined) onStep(progress.message);
      else for (const [index, step] of steps.entries()) if (progress.message === `step ${index + 1}`) step.resolve();
    };
    const result = await client.callTool({ name: 'make_report', arguments: fails ? { fails } : {} }, { onprogress, timeout: 60_000 });
    for (const step of steps) step.resolve();
    await client.close();
    return { reports, result };
  }

  for (const mode of ['legacy', 'auto'] as const)
    test(`is reported to a ${mode} client that asks for it, rising, until the job has ended`, async () => {
      const { reports, result } = await make('reader', mode);
      const messages = reports.map(({ message }) => message);
      expect(messages).toEqual(expect.arrayContaining(['step 1', 'step 2', 'succeeded']));
      expect(messages.at(-1)).toBe('succeeded');
      expect(reports.at(-1)).toMatchObject({ progress: 100, total: 100 });
      const values = reports.map(({ progress }) => progress);
      expect(values).toEqual([...new Set(values)].toSorted((a, b) => a - b));
      expect(result.structuredContent).toMatchObject({ id: expect.any(String), status: 'succeeded' });
    }, 60_000);

  test('of a job that fails ends with its status; nothing of the error is told', async () => {
    const { reports, result } = await make('reader', 'auto', true);
    expect(reports.at(-1)?.message).not.toContain('paper');
    expect(result.structuredContent).toMatchObject({ status: 'failed' });
    expect(JSON.stringify(result)).not.toContain('out of paper');
  }, 60_000);

  test('is not for a key that may not read jobs: the call ends when the job has started', async () => {
    const { reports, result } = await make('writer', 'auto');
    expect(reports).toEqual([]);
    expect(result.structuredContent).toMatchObject({ id: expect.any(String), status: 'queued' });
  }, 60_000);

  test('a job is found and cancelled by tools, by a caller who may', async () => {
    const call = async (who: string, name: string, args: Record<string, unknown>) => {
      const client = new Client({ name: 'manager', version: '1' }, { versionNegotiation: { mode: 'auto' } });
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${keys[who]}` } } }));
      return client.callTool({ name, arguments: args }).finally(() => void client.close());
    };
    const cancel = async (): Promise<void> => {
      const { structuredContent } = await call('manager', 'job_list', { status: 'running' });
      const [{ id }] = (structuredContent as { items: [{ id: string }] }).items;
      await expect(call('reader', 'job_cancel', { id })).rejects.toThrow('Unknown tool');
      expect((await call('manager', 'job_cancel', { id })).structuredContent).toMatchObject({ id });
    };
    let cancelled: Promise<void> | undefined;
    // The first report may come while the job waits for a worker.
    const onStep = (message: string | undefined) => message === 'step 1' && (cancelled ??= cancel());
    const { reports, result } = await make('manager', 'auto', false, onStep);
    await cancelled;
    expect([result.structuredContent, reports.at(-1)?.message]).toMatchObject([{ status: 'cancelled' }, 'cancelled']);
  }, 60_000);

  for (const mode of ['legacy', 'auto'] as const)
    test(`ends for a ${mode} client when its key is revoked; the job goes on`, async () => {
      const user = await createUser(kit.app.db, { username: `short-${mode}` });
      const { raw, apiKey } = await createApiKey(kit.app.db, { user, name: 'short', scopes: ['reports:*', 'jobs:read'] });
      keys['short'] = raw;
      let revoked: Promise<void> | undefined;
      const { result } = await make('short', mode, false, () => (revoked ??= revokeApiKey(kit.app.db, apiKey, { reason: 'test' })));
      await revoked;
      expect(result.structuredContent).toMatchObject({ status: expect.stringMatching(/^(queued|running)$/) });
    }, 60_000);

  test('counts as an event stream: a caller with too many gets the response without waiting', async () => {
    await make('reader', 'auto');
    const [exchange] = calls as [Exchange];
    const opened = Array.from({ length: INPUT_LIMITS.streamsPerCaller }, () => openStreamsOf(exchange.host).add(exchange));
    const { reports, result } = await make('reader', 'auto');
    for (const close of opened) close();
    expect(reports).toEqual([]);
    expect(result.structuredContent).toMatchObject({ status: 'queued' });
    expect((await make('reader', 'auto')).reports.at(-1)?.message).toBe('succeeded');
  }, 60_000);
});
