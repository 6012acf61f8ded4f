import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KitProgram, sourceOf } from '../../../../test/cli/kit-program.ts';
import { LOOPBACK } from '../../../../test/webhooks/outbox.ts';
import { startReceiver, type Receiver } from '../../../../test/webhooks/receiver.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import { createEndpoint } from '../endpoints/create-endpoint.ts';
import { generateFernetKey, parseFernetKey } from '../../../db/sealing/fernet.ts';
import { publish } from '../publishing/publish.ts';
import { generateSecret, signedHeaders, signingKey } from '../signing/signature.ts';
import { findEndpoint } from '../endpoints/store.ts';
import { unbindWebhooks, useWebhooks } from '../webhooks.ts';

const UNKNOWN_ID = '01890000-0000-7000-8000-000000000000';

describeDatabases('kit webhooks', (database) => {
  let folder = '';
  let receiver: Receiver;
  let owners = 0;
  let program: KitProgram;
  const start = (args: readonly string[]): ChildProcessWithoutNullStreams => program.start(args, { bin: 'kit_webhooks' });
  async function run(args: readonly string[], environment: Record<string, string> = {}) {
    const { code, stdout, stderr } = await program.run(['webhooks', ...args], { environment });
    return { code, stdout: stdout.trimEnd(), stderr };
  }
  /** The first output that matches. */
  async function output(child: ChildProcessWithoutNullStreams, pattern: RegExp): Promise<string> {
    let text = '';
    for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      const match = pattern.exec(text);
      if (match !== null) return match[1] ?? match[0];
    }
    throw new Error(`the program ended after: ${text}`);
  }
  async function deliverable(path: string) {
    const owner = `owner-${++owners}`;
    return database.db.transaction(async (tx) => {
      const { endpoint } = await createEndpoint(tx, { owner, url: receiver.url(path), events: ['*'] });
      const { id } = await publish(tx, 'order.paid', { path }, { owner });
      return { endpoint, event: id };
    });
  }
  const deliveryOf = async (event: string) =>
    (await database.db.query<{ id: string; status: string }>('select id, status from webhook_deliveries where event_id = $1', [event]))[0];

  beforeAll(async () => {
    receiver = await startReceiver();
    useWebhooks(database.db, { urlPolicy: LOOPBACK });
    folder = await mkdtemp(join(tmpdir(), 'kit-webhooks-'));
    program = new KitProgram(folder);
    await writeFile(
      join(folder, 'kit.config.ts'),
      `import { createApp } from ${sourceOf('index.ts')};
import { metrics } from ${sourceOf('contrib/metrics/index.ts')};
import { URLPolicy, webhooks } from ${sourceOf('contrib/webhooks/index.ts')};
const urlPolicy = URLPolicy({ allowHttp: true, allowPrivateNetworks: true });
export default createApp({ database: ${JSON.stringify(database.url)}, modules: [webhooks({ urlPolicy }), metrics({ port: 0 })], mount: {} });
`,
    );
    expect(await program.run(['migrate'])).toMatchObject({ code: 0 });
  });
  afterAll(async () => {
    unbindWebhooks(database.db);
    await receiver.close();
    await program.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('deliver sends what is due and prints its counters; stats, retry, replay and prune follow', async () => {
    receiver.answer('/bad', 500);
    const [good, bad] = [await deliverable('/good'), await deliverable('/bad')];
    const delivered = await run(['deliver', '--timeout', '5', '--concurrency', '2']);
    expect(delivered).toMatchObject({ code: 0, stdout: 'succeeded=1 retrying=1 failed=0 disabled_endpoints=0 lost_claims=0' });
    expect(JSON.parse((await run(['stats'])).stdout)).toMatchObject({ succeeded: 1, retrying: 1, pending: 1, disabled_endpoints: 0 });
    expect((await run(['stats', '--prometheus'])).stdout).toContain('kit_webhooks_succeeded{database="default"} 1');
    const [ofGood, ofBad] = [await deliveryOf(good.event), await deliveryOf(bad.event)];
    expect(await run(['retry', '--delivery-id', ofBad?.id ?? ''])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('queued again'),
    });
    const refused = await run(['retry', '--delivery-id', ofGood?.id ?? '']);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('has succeeded')]);
    const replayed = await run(['replay', '--since', '2020-01-01', '--endpoint', good.endpoint.id, '--dry-run']);
    expect(replayed).toMatchObject({ code: 0, stdout: '1 deliveries would be sent again.' });
    expect((await run(['deliver', '--limit', '1'])).stdout).toContain('retrying=1');
    expect(await run(['prune', '--days', '0'])).toMatchObject({ code: 0, stdout: expect.stringMatching(/^1 events from before/) });
    expect(await deliveryOf(good.event)).toBeUndefined();
    expect(await deliveryOf(bad.event)).toMatchObject({ status: 'pending' });
  });

  test('deliver --loop sends new work until it is told to stop, says where its own metrics are, and then ends well', async () => {
    const child = program.start(['deliver', '--loop', '--interval', '0.2'], { bin: 'kit_webhooks' });
    let logged = '';
    child.stderr.on('data', (chunk: Buffer) => (logged += chunk.toString()));
    const { event } = await deliverable('/loop');
    for (let tries = 0; tries < 200 && (await deliveryOf(event))?.status !== 'succeeded'; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100));
    const address = /^Metrics for Prometheus: (http:\/\/127\.0\.0\.1:\d+\/metrics)$/m.exec(logged)?.[1] ?? '';
    expect(await (await fetch(address)).text()).toContain('kit_webhooks_attempts_total{database="default",outcome="succeeded"} 1');
    child.kill('SIGTERM');
    expect(await output(child, /succeeded=\d+/)).toBe('succeeded=1');
    expect(await once(child, 'close')).toEqual([0, null]);
  });

  test('generate-key makes a key that encrypt-secrets seals with; without keys it says what to do', async () => {
    const { endpoint } = await deliverable('/sealed');
    const { stdout: key } = await run(['generate-key']);
    expect(() => parseFernetKey(key)).not.toThrow();
    expect(await run(['encrypt-secrets'])).toMatchObject({ code: 1, stderr: expect.stringContaining('generate-key') });
    const sealed = await run(['encrypt-secrets'], { WEBHOOK_SECRET_KEYS: key });
    expect(sealed).toMatchObject({ code: 0, stdout: expect.stringContaining('encrypted with the first key') });
    expect(sealed.stdout + sealed.stderr).not.toContain(key);
    expect((await findEndpoint(database.db, endpoint.id))?.secret).toMatch(/^fernet:/);
  });

  test('assign-audience gives one event an audience, once', async () => {
    const { event } = await deliverable('/legacy');
    await database.db.query('update webhook_events set audience = null where id = $1', [event]);
    const assign = ['assign-audience', '--event-id', event, '--owner', `owner-${owners}`];
    expect(await run([...assign, '--broadcast'])).toMatchObject({ code: 1, stderr: expect.stringContaining('Give one audience') });
    expect(await run(assign)).toMatchObject({ code: 0, stdout: `Event ${event} is for: owner.` });
    expect(await run(assign)).toMatchObject({ code: 1, stderr: expect.stringContaining('has one already') });
  });

  test('listen verifies and prints deliveries, and refuses what is not signed', async () => {
    const secret = generateSecret();
    const child = start(['listen', '--port', '0']);
    child.stdin.end(`${secret}\n`);
    const url = await output(child, /Listening on (\S+)/);
    const body = '{"type":"order.paid"}';
    const headers = signedHeaders([signingKey(secret)], { id: 'msg_1', timestamp: Math.floor(Date.now() / 1000), body });
    expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(204);
    expect((await fetch(url, { method: 'POST', body: `${body} `, headers })).status).toBe(401);
    expect(await output(child, /refused \(\w+\)/)).toMatch(/^refused/);
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
  });

  test('listen --status answers it to genuine deliveries, so that retries can be seen', async () => {
    const secret = generateSecret();
    const child = start(['--json', 'listen', '--port', '0', '--status', '503']);
    child.stdin.end(`${secret}\n`);
    const url = await output(child, /Listening on (\S+?)["\s]/);
    const body = '{"type":"order.paid"}';
    const headers = signedHeaders([signingKey(secret)], { id: 'msg_1', timestamp: Math.floor(Date.now() / 1000), body });
    expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(503);
    expect(JSON.parse(await output(child, /\{"verified":.*\}/))).toEqual({ verified: true, id: 'msg_1', body });
    expect((await fetch(url, { method: 'POST', body: 'forged', headers })).status).toBe(401);
    expect(JSON.parse(await output(child, /\{"verified":false.*\}/))).toEqual({ verified: false, reason: 'no_matching_signature' });
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
  });

  test('--json makes every command print one line of JSON', async () => {
    const json = async (...args: string[]) => {
      const { code, stdout } = await run(['--json', ...args], { WEBHOOK_SECRET_KEYS: key });
      expect(code).toBe(0);
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const key = generateFernetKey();
    await database.db.query('delete from webhook_endpoints');
    const { event, endpoint } = await deliverable('/json');
    expect(await json('generate-key')).toEqual({ key: expect.stringMatching(/^[\w-]{43}=$/) });
    expect(await json('deliver')).toMatchObject({ succeeded: 1, retrying: 0, failed: 0, disabled_endpoints: 0, lost_claims: 0 });
    expect(await json('stats')).toMatchObject({ pending: expect.any(Number), oldest_pending_age_seconds: null });
    const id = (await deliveryOf(event))?.id ?? '';
    const since = ['--since', '2020-01-01', '--endpoint', endpoint.id];
    expect(await json('replay', ...since, '--dry-run')).toEqual({ deliveries: 1, dry_run: true });
    expect(await json('replay', ...since)).toEqual({ deliveries: 1, dry_run: false });
    expect(await json('deliver')).toMatchObject({ succeeded: 1 });
    expect(await json('retry', '--delivery-id', id, '--force')).toEqual({
      id,
      status: 'pending',
      event_type: 'order.paid',
      endpoint_id: endpoint.id,
    });
    await database.db.query('update webhook_events set audience = null where id = $1', [event]);
    expect(await json('assign-audience', '--event-id', event, '--broadcast')).toEqual({ id: event, audience: 'broadcast' });
    expect(await json('encrypt-secrets')).toEqual({ encrypted: 1, unchanged: 0, unavailable: [] });
    await run(['deliver'], { WEBHOOK_SECRET_KEYS: key });
    expect(await json('prune', '--days', '0')).toEqual({ removed: expect.any(Number), before: expect.stringMatching(/^2\d{3}-/) });
  });

  test.each([
    [['deliver', '--timeout', '0'], 1, '--timeout'],
    [['deliver', '--loop', '--limit', '5'], 2, "option '--limit <count>' cannot be used with option '--loop'"],
    [['deliver', '--database', 'other'], 1, 'There is no database "other"'],
    [['retry', '--delivery-id', 'x'], 1, '--delivery-id'],
    [['retry', '--delivery-id', UNKNOWN_ID], 1, 'no such delivery'],
    [['replay', '--since', 'yesterday'], 1, '--since'],
    [['prune', '--days', '-1'], 1, '--days'],
    [['prune', '--days', '999999999'], 1, '--days'],
    [['replay', '--since', '2026-02-31'], 1, '--since'],
    [['replay', '--since', '2026-03-01', '--until', '2026-03-01'], 1, '--until is not after --since'],
    [['prune'], 2, '--days'],
    [['listen', '--status', '99'], 1, '--status'],
    [['listen', '--status', '600'], 1, '--status'],
  ])('%j is refused with a sentence', async (args, code, words) => {
    expect(await run(args)).toMatchObject({ code, stdout: '', stderr: expect.stringContaining(words) });
  });
});
