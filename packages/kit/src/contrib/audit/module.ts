import type { App, Module } from '../../app/declare/module.ts';
import { sensitiveNamesOf } from '../../app/check/sensitive-names.ts';
import type { UserDirectory } from '../../auth/people/user-directory.ts';
import type { Database } from '../../db/engine/db.ts';
import type { Counter } from '../../observe/metric-registry.ts';
import { readOptions } from '../../options/read-options.ts';
import { filledText, listOf } from '../../options/value-rule.ts';
import { auditAdmin } from './admin.ts';
import { auditCommand } from './commands.ts';
import { auditMigrations } from './migrations/all.ts';
import { auditChain, auditEntries, auditInbox } from './models.ts';
import { auditSink } from './record/record.ts';
import { auditResource } from './serve/resource.ts';
import { Sealer, sealers } from './chain/sealer.ts';
import { recordingApps } from './chain/recording-apps.ts';
import { unsealed } from './chain/store.ts';
import { verifyChain } from './chain/verify-chain.ts';

export interface AuditOptions {
  /** Aliases of the databases whose changes are recorded; each has a chain of its own. Default: `default` alone. */
  readonly databases?: readonly string[];
}

/**
 * Who did what to which object: entries in the transaction of the change, chained by hashes. Mount AuditController to read them.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), audit()], mount: { '/v1': { '/audit': AuditController } } });
 * ```
 */
export function audit(options: AuditOptions = {}): Module {
  const { databases = ['default'] } = readOptions('audit()', options, { databases: listOf(filledText, { min: 1 }) });
  let users: UserDirectory | null = null;
  const sealed: Database[] = [];
  let written: Counter<'action'> | undefined;
  return {
    name: 'audit',
    models: [auditInbox, auditEntries, auditChain],
    resources: [auditResource],
    migrations: auditMigrations,
    databases,
    commands: [auditCommand],
    admin: auditAdmin(() => users),
    provides(app) {
      ({ users } = app);
      let names: ReadonlySet<string> | undefined;
      const sink = auditSink({
        clock: app.clock,
        sensitive: () => (names ??= sensitiveNamesOf(app)),
        recorded: () => written && ((entries) => entries.forEach(({ action }) => written?.add({ action }))),
        databases,
      });
      return { audit: sink };
    },
    metrics(registry, app) {
      written = registry.counter({
        name: 'kit_audit_entries_total',
        help: 'Audit entries that were committed, by action.',
        labels: { action: { max: 100 } },
      });
      registry.gauge({
        name: 'kit_audit_unsealed_age_seconds',
        help: 'Age of the oldest audit entry that is not in the chain yet.',
        labels: { database: databases },
        read: () => Promise.all(databases.map((alias) => unsealedAge(app, alias))),
      });
    },
    async verifyData(db) {
      const { fault } = await verifyChain(db);
      return fault === null ? [] : [`The chain of audit entries is broken: ${fault.message}`];
    },
    setup(app) {
      for (const alias of databases) {
        const database = app.databases[alias];
        if (database === undefined) continue;
        sealers.bind(database, new Sealer(database, app.log));
        recordingApps.bind(database, app);
        sealed.push(database);
      }
    },
    start() {
      for (const database of sealed) sealers.of(database).startSweeps();
    },
    async stop() {
      for (const database of sealed.splice(0)) {
        await sealers.of(database).stop();
        sealers.release(database);
        recordingApps.release(database);
      }
    },
  };
}

async function unsealedAge({ databases, clock }: App, alias: string) {
  const database = databases[alias];
  const oldest = database === undefined ? null : (await unsealed(database)).oldest;
  return { labels: { database: alias }, value: oldest === null ? 0 : (clock.now().getTime() - oldest.getTime()) / 1000 };
}
