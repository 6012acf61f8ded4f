import { claimReady } from '../../src/contrib/jobs/running/claim-store.ts';
import { release } from '../../src/contrib/jobs/running/result-store.ts';
import { readStats as readJobStats } from '../../src/contrib/jobs/rows/stats-store.ts';
import { pruneJobs } from '../../src/contrib/jobs/running/prune.ts';
import { claimDue } from '../../src/contrib/webhooks/delivery/claim-store.ts';
import { readStats } from '../../src/contrib/webhooks/delivery/maintenance-store.ts';
import { prune } from '../../src/contrib/webhooks/delivery/prune.ts';
import { releaseClaims } from '../../src/contrib/webhooks/delivery/result-store.ts';
import { newestDeliveriesOf } from '../../src/contrib/webhooks/endpoints/management-store.ts';
import { publish } from '../../src/contrib/webhooks/index.ts';
import { startJob } from '../../src/contrib/jobs/index.ts';
import { requests } from '../../src/contrib/requests/index.ts';
import { removeOld } from '../../src/contrib/requests/log/store.ts';
import type { Database } from '../../src/db/engine/db.ts';
import { pruneRecords } from '../../src/http/idempotency/record-store.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import type { AdminApp, Browser } from '../admin/admin-app.ts';
import { everyListApp, fillEveryList, nothing } from '../admin/every-list.ts';
import { fillAudit, fillJobs, fillRequests, fillWebhooks, settle } from '../admin/large-tables.ts';

const DAY_MS = 86_400_000;
const SPAN_MS = 29 * DAY_MS;
const CLAIMED = 50;
const PRUNED = 500;

const PAGES = [
  'resources/deliveries',
  'resources/deliveries?filter.status=failed',
  'resources/events',
  'resources/jobs',
  'resources/jobs?filter.status=queued',
  'resources/jobs?filter.status=failed',
  'resources/job-failures',
  'resources/audit-log',
  'resources/audit-log?filter.action=bulk.rare',
  'resources/requests',
  'resources/requests?filter.failed=true',
];

/** One thing that is measured. */
export interface Operation {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/**
 * Tables of an application that has run for long, and the work that goes on in it: claims, lists, counts, prunes and pages of the admin site. Rows are made by the
 * database; measured calls are the product's. PostgreSQL.
 */
export class LargeWork {
  readonly #db: Database;
  readonly #clock: FakeClock;
  readonly #site: AdminApp;
  #staff: Browser | undefined;
  #rows = 0;
  readonly #round = { lastTurn: '' };

  private constructor(db: Database, clock: FakeClock, site: AdminApp) {
    this.#db = db;
    this.#clock = clock;
    this.#site = site;
  }

  static async start(db: Database, clock: FakeClock, rows: number): Promise<LargeWork> {
    const work = new LargeWork(db, clock, await everyListApp(db, clock, [requests()]));
    // The other lists stay small: they have tests of their own.
    await fillEveryList(db, work.#site, clock, 1_000);
    await db.transaction(async (tx) => {
      const [owner] = await tx.query<{ owner_id: string }>('select owner_id from webhook_endpoints limit 1');
      for (let n = 0; n < 4 * CLAIMED; n++) {
        await publish(tx, 'order.paid', { n }, { owner: owner?.owner_id ?? '' });
        await startJob(tx, nothing, {});
      }
    });
    await db.execute(
      `insert into request_log (id, finished_at, duration_ms, method, failed, aborted, owner_id, tenant_key, deprecated, via)
       select id, $1, 5, 'GET', false, false, 'template', '', false, 'http' from webhook_endpoints`,
      [clock.now()],
    );
    await fillRequests(db, { rows: 1_000, until: clock.now(), spanMs: SPAN_MS });
    work.#rows = 1_000;
    await work.grow(rows);
    return work;
  }

  /** As many rows of each table, and a vacuum behind it. */
  async grow(rows: number): Promise<void> {
    const size = { rows, after: this.#rows, until: this.#clock.now(), spanMs: SPAN_MS };
    for (const fill of [fillWebhooks, fillAudit, fillJobs, fillRequests]) await fill(this.#db, size);
    await this.#db.execute(
      `insert into kit_idempotency (scope_hash, key, caller, operation, fingerprint, token, state, lease_until, created_at, expires_at)
       select 'bulk-' || n, 'k-' || n, 'bulk', 'POST /orders', 'f', gen_random_uuid(), 'complete', $1, $1, $2 from generate_series(${this.#rows + 1}, ${rows}) n`,
      [this.#clock.now(), new Date(this.#clock.now().getTime() + DAY_MS)],
    );
    this.#rows = rows;
    await settle(this.#db);
    await this.#db.execute('vacuum analyze');
    this.#staff = await this.#site.browser();
  }

  close(): Promise<void> {
    return this.#site.close();
  }

  async operations(): Promise<readonly Operation[]> {
    const [db, clock] = [this.#db, this.#clock];
    const [endpoint] = await db.query<{ id: string }>('select id from webhook_endpoints order by id limit 1');
    const endpointId = endpoint?.id ?? '';
    // Older than every row that was made: there is nothing to remove.
    const beforeAll = new Date(clock.now().getTime() - SPAN_MS - DAY_MS);
    const old = new Date(clock.now().getTime() - 2 * DAY_MS);
    const removes = async (removed: Promise<number>, expected: number): Promise<void> => {
      const count = await removed;
      if (count !== expected) throw new Error(`removed ${count} instead of ${expected}`);
    };
    return [
      { name: 'claim of 50 deliveries', run: () => this.#claimDeliveries() },
      { name: 'claim of 50 jobs', run: () => this.#claimJobs() },
      { name: "list of an endpoint's deliveries", run: async () => void (await newestDeliveriesOf(db, endpointId, 101)) },
      { name: 'statistics of webhooks', run: async () => void (await readStats(db, clock.now())) },
      { name: 'statistics of jobs', run: async () => void (await readJobStats(db, clock.now())) },
      { name: 'prune of 500 events', run: () => removes(prune(db, old, PRUNED), PRUNED) },
      { name: 'prune of no events', run: () => removes(prune(db, beforeAll, PRUNED), 0) },
      { name: 'prune of 500 jobs', run: () => removes(pruneJobs(db, old, PRUNED), PRUNED) },
      { name: 'prune of no jobs', run: () => removes(pruneJobs(db, beforeAll, PRUNED), 0) },
      { name: 'prune of no finished requests', run: () => removes(removeOld(db, beforeAll, beforeAll), 0) },
      { name: 'prune of no idempotency records', run: () => removes(pruneRecords(db), 0) },
      ...PAGES.map((path) => ({ name: `admin page ${path}`, run: () => this.#page(path) })),
    ];
  }

  async #page(path: string): Promise<void> {
    if (this.#staff === undefined) throw new Error('the tables are not made yet');
    const { status } = await this.#site.get(this.#staff, path);
    if (status !== 200) throw new Error(`${path} returned ${status}`);
  }

  async #claimDeliveries(): Promise<void> {
    const now = this.#clock.now();
    const limits = { now, until: new Date(now.getTime() + 75_000), free: CLAIMED, perEndpoint: CLAIMED, busy: new Map<string, number>() };
    const { claims } = await claimDue(this.#db, limits);
    if (claims.length !== CLAIMED) throw new Error(`claimed ${claims.length} deliveries`);
    await releaseClaims(this.#db, claims);
  }

  async #claimJobs(): Promise<void> {
    const limits = { queue: 'default', now: this.#clock.now(), leaseMs: 60_000, max: CLAIMED, worker: 'bench' };
    const claims = await claimReady(this.#db, limits, this.#round);
    // Slots are shared by owners: a round may leave some.
    if (claims.length < CLAIMED / 2) throw new Error(`claimed ${claims.length} jobs`);
    await release(this.#db, claims);
  }
}
