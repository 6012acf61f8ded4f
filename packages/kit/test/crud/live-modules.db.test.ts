import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Authenticator } from '../../src/auth/request/authenticator.ts';
import { job } from '../../src/contrib/jobs/declare/job.ts';
import { JobController, jobs } from '../../src/contrib/jobs/index.ts';
import { runDueJobs } from '../../src/contrib/jobs/manage/work-jobs.ts';
import { startJob } from '../../src/contrib/jobs/start/start-job.ts';
import { RequestController, requests } from '../../src/contrib/requests/index.ts';
import { deliverDue } from '../../src/contrib/webhooks/delivery/deliver.ts';
import { WebhookEndpointController, webhooks } from '../../src/contrib/webhooks/index.ts';
import { publish } from '../../src/contrib/webhooks/publishing/publish.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';
import { Follower } from './live.ts';

const PATIENCE = { timeout: 20_000, interval: 20 };

const byHeader: Authenticator = {
  name: 'header',
  securityScheme: { type: 'apiKey', in: 'header', name: 'x-user' },
  async authenticate({ headers: { 'x-user': id } }) {
    if (typeof id !== 'string') return null;
    return {
      user: { id, username: id, email: null, is_active: true, is_staff: false, is_superuser: false },
      scheme: 'header',
      scopes: null,
    };
  },
};
const work = job('work', { input: z.object({ n: z.int() }), result: z.object({ n: z.int() }), run: async ({ input }) => input });

class LiveJobs extends JobController {
  static override readonly live = true;
}
class LiveRequests extends RequestController {
  static override readonly live = true;
}
class LiveEndpoints extends WebhookEndpointController {
  static override readonly liveDeliveries = true;
}

describeDatabases('live lists of tables that workers write', (database) => {
  let kit: TestApp;
  let url: string;
  let receiver: Receiver;
  const open: Follower[] = [];
  beforeAll(async () => {
    receiver = await startReceiver();
    kit = await testApp({
      database: database.db,
      modules: [jobs({ jobs: [work] }), webhooks({ urlPolicy: LOOPBACK }), requests()],
      authenticators: [byHeader],
      mount: { '/v1': { '/jobs': LiveJobs, '/hooks': LiveEndpoints, '/requests': LiveRequests } },
    });
    url = `${await kit.listen()}/v1`;
  });
  afterAll(async () => {
    await kit?.close();
    await receiver?.close();
  });
  afterEach(async () => {
    for (const each of open.splice(0)) await each.disconnect();
  });

  async function follow(person: 'ann' | 'bob', path: string, query = ''): Promise<Follower> {
    const follower = await new Follower(person, query).connect(`${url}${path}`);
    open.push(follower);
    await vi.waitFor(() => expect([follower.batches, follower.ended]).toEqual([1, undefined]), PATIENCE);
    return follower;
  }
  const eventsOf = ({ log }: Follower) => log.map(({ event }) => event).filter((event) => event !== 'ready');

  test('a job appears when it is started, changes while it runs, and leaves a list of queued jobs; those of others never come', async () => {
    const [all, queued, other] = [
      await follow('ann', '/jobs'),
      await follow('ann', '/jobs', '?status=queued'),
      await follow('bob', '/jobs'),
    ];
    const { id } = await database.db.transaction((tx) => startJob(tx, work, { n: 1 }, { owner: 'ann' }));
    await vi.waitFor(() => expect([all.rows.get(id)?.status, queued.rows.get(id)?.status]).toEqual(['queued', 'queued']), PATIENCE);
    await runDueJobs(database.db);
    await vi.waitFor(() => expect(all.rows.get(id)).toMatchObject({ status: 'succeeded', result: { n: 1 } }), PATIENCE);
    await vi.waitFor(() => expect(queued.rows.size).toBe(0), PATIENCE);
    expect([eventsOf(queued), eventsOf(other)]).toEqual([['upsert', 'remove'], []]);
  });

  test('a delivery appears and changes below its endpoint, and the stream ends when the endpoint is deleted', async () => {
    const headers = { 'x-user': 'ann', 'content-type': 'application/json' };
    const made = await fetch(`${url}/hooks`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ url: receiver.url('/ann'), events: ['*'] }),
    });
    const { id: endpoint } = (await made.json()) as { id: string };
    const [all, pending] = [
      await follow('ann', `/hooks/${endpoint}/deliveries`),
      await follow('ann', `/hooks/${endpoint}/deliveries`, '?status=pending'),
    ];
    const foreign = await new Follower('bob').connect(`${url}/hooks/${endpoint}/deliveries`);
    expect(foreign.status).toBe(404);
    await database.db.transaction((tx) => publish(tx, 'order.paid', { n: 1 }, { owner: 'ann' }));
    await vi.waitFor(() => expect([...all.rows.values()]).toMatchObject([{ status: 'pending' }]), PATIENCE);
    await vi.waitFor(() => expect(pending.rows.size).toBe(1), PATIENCE);
    await deliverDue(database.db);
    await vi.waitFor(() => expect([...all.rows.values()]).toMatchObject([{ status: 'succeeded', attempts: 1 }]), PATIENCE);
    await vi.waitFor(() => expect(pending.rows.size).toBe(0), PATIENCE);
    expect(eventsOf(pending).at(-1)).toBe('remove');
    expect(eventsOf(all)).not.toContain('reset');
    await fetch(`${url}/hooks/${endpoint}`, { method: 'DELETE', headers });
    expect(await all.whenEnded()).toMatchObject({ event: 'error', data: { code: 'endpoint_not_found' } });
  });

  test('a request appears when its response is complete, for its caller only', async () => {
    const [own, other] = [await follow('ann', '/requests'), await follow('bob', '/requests')];
    const before = other.rows.size;
    await fetch(`${url}/jobs?limit=1`, { headers: { 'x-user': 'ann' } });
    await vi.waitFor(
      () => expect([...own.rows.values()]).toContainEqual(expect.objectContaining({ route: '/v1/jobs', status: 200 })),
      PATIENCE,
    );
    expect(other.rows.size).toBe(before);
  });
});
