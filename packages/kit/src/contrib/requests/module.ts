import type { Module } from '../../app/declare/module.ts';
import type { Database } from '../../db/engine/db.ts';
import type { Counter } from '../../observe/metric-registry.ts';
import { Retention } from '../../work/retention.ts';
import { requestsAdmin } from './admin.ts';
import { LOG_OUTCOMES, RequestLog, requestLogs } from './log/log.ts';
import { requestMigrations } from './migrations/all.ts';
import { requestErrors } from './errors.ts';
import { requestLog, requestQuotas, requestUsage } from './models.ts';
import { readRequestsOptions, type RequestsOptions } from './options.ts';
import { requestsPortal } from './portal.ts';
import { databaseCounter, quotaCounters } from './quotas/quota-counter.ts';
import { removeOldCounts } from './quotas/quota-store.ts';
import { countRequest, usageOf } from './quotas/quotas.ts';
import { RedisCounter } from './quotas/redis-counter.ts';
import { quotaResource, requestResource, usageResource } from './resource.ts';
import { removeOld } from './log/store.ts';
import { useOfTenants } from './quotas/tenant-use.ts';
import { recordPeriods } from './quotas/usage-recorded.ts';

const DAY_MS = 86_400_000;

/**
 * The request log: who called what, when, and how it ended; and how often, by day. Written behind the requests, without anything of their content. Also the
 * quotas of API keys, users and tenants, counted with each request. Mount RequestController, UsageController and QuotaController for self-service.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), apiKeys(), requests()], mount: { '/v1': { '/requests': RequestController, '/usage': UsageController } } });
 * ```
 */
export function requests(options: RequestsOptions = {}): Module {
  const settings = readRequestsOptions(options);
  let log: RequestLog | undefined;
  let rows: Counter<'outcome'> | undefined;
  let retention: Retention | undefined;
  let recording: Retention | undefined;
  let database: Database | undefined;
  return {
    name: 'requests',
    models: [requestLog, requestUsage, requestQuotas],
    resources: [requestResource, usageResource, quotaResource],
    errors: requestErrors,
    provides: () => ({ quotas: { usageOfKey: (db, keyId) => usageOf(db, 'key', keyId), useOfTenants } }),
    migrations: requestMigrations,
    admin: requestsAdmin,
    portal: requestsPortal,
    middleware: [
      {
        name: 'requests',
        // What is not in the document is not the API: the admin site, probes, metrics, the endpoint around the calls of tools.
        appliesTo: ({ hidden }) => !hidden,
        documents: { raises: [requestErrors.request_quota_exceeded] },
        onAdmitted: (exchange) => (database === undefined ? undefined : countRequest(exchange, database, settings.quotas)),
        // What the pages of the portal read is no use of the API.
        onFinish: (exchange) => (exchange.parent?.route?.metadata['portal'] === true ? undefined : log?.finished(exchange)),
      },
    ],
    metrics(registry) {
      rows = registry.counter({
        name: 'kit_request_log_rows_total',
        help: 'Rows of the request log, by outcome.',
        labels: { outcome: LOG_OUTCOMES },
      });
    },
    setup(app) {
      const { redis } = settings.quotas;
      quotaCounters.bind(app.db, redis === null ? databaseCounter(app.db) : new RedisCounter(app.db, redis, app));
      log = new RequestLog(app.db, { clock: app.clock, log: app.log, settings, rows });
      requestLogs.bind((database = app.db), log);
    },
    start({ db, clock, log: appLog }) {
      const before = (days: number): Date => new Date(clock.now().getTime() - days * DAY_MS);
      retention = new Retention({
        prune: async () =>
          (await removeOld(db, before(settings.retentionDays), before(settings.usageRetentionDays))) +
          (await removeOldCounts(db, before(settings.usageRetentionDays))),
        failed: (error) => appLog.warn({ err: error }, 'old rows of the request log could not be removed'),
      });
      retention.start();
      recording = new Retention({
        prune: () => recordPeriods(db, clock),
        failed: (error) => appLog.warn({ err: error }, 'used quotas could not be recorded; they are tried again'),
      });
      recording.start();
    },
    async stop() {
      await retention?.stop();
      await recording?.stop();
      await log?.stop();
      if (database !== undefined) {
        await quotaCounters.find(database)?.stop();
        quotaCounters.release(database);
        requestLogs.release(database);
      }
      [log, retention, recording, database] = [undefined, undefined, undefined, undefined];
    },
  };
}
