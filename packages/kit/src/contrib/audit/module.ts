import type { App, Module } from '../../app/module.ts';
import type { Counter } from '../../observe/metric-registry.ts';
import { auditAdmin } from './admin.ts';
import { auditCommand } from './commands.ts';
import { initial } from './migrations/index.ts';
import { auditChain, auditEntries } from './models.ts';
import { auditSink } from './record.ts';
import { readOptions } from '../../options/read-options.ts';
import { filledText, listOf } from '../../options/value-rule.ts';

export interface AuditOptions {
  /** Aliases of the databases whose changes are recorded; each has a chain of its own. `default` alone unless given. */
  readonly databases?: readonly string[];
}

/** Who did what to which object: entries in the transaction of the change, chained by hashes. Mount AuditController to read them. */
export function audit(options: AuditOptions = {}): Module {
  const { databases = ['default'] } = readOptions('audit()', options, { databases: listOf(filledText, { min: 1 }) });
  let app: App | undefined;
  const installed = () => {
    if (app === undefined) throw new Error('audit() is not installed: add it to the modules of createApp.');
    return app;
  };
  let sensitive: ReadonlySet<string> | undefined;
  let written: Counter<'action'> | undefined;
  const sink = auditSink({
    clock: { now: () => installed().clock.now() },
    sensitive: () => (sensitive ??= sensitiveColumns(installed())),
    recorded: () => written && ((entries) => entries.forEach(({ action }) => written?.add({ action }))),
    databases,
  });
  return {
    name: 'audit',
    models: [auditEntries, auditChain],
    migrations: [initial],
    databases,
    commands: [auditCommand(() => sink)],
    admin: auditAdmin(() => installed().users),
    metrics(registry) {
      written = registry.counter({
        name: 'kit_audit_entries_total',
        help: 'Audit entries that were committed, by action.',
        labels: { action: { max: 100 } },
      });
    },
    provides(created) {
      app = created;
      return { audit: sink };
    },
  };
}

/** Columns that some model marks as sensitive are masked in every entry, wherever the name appears. */
function sensitiveColumns({ modules }: App): ReadonlySet<string> {
  const models = modules.flatMap((module) => module.models ?? []);
  return new Set(
    models.flatMap(({ columns }) =>
      Object.entries(columns)
        .filter(([, column]) => column.settings.sensitive)
        .map(([name]) => name),
    ),
  );
}
