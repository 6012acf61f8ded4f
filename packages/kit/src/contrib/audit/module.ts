import type { App, Module } from '../../app/module.ts';
import type { Model } from '../../db/model.ts';
import { auditAdmin } from './admin.ts';
import { auditCommand } from './commands.ts';
import { initial } from './migrations/index.ts';
import { auditChain, auditEntries } from './models.ts';
import { auditSink } from './record.ts';

/** Who did what to which object: entries in the transaction of the change, chained by hashes. Mount AuditController to read them. */
export function audit(): Module {
  let app: App | undefined;
  const installed = () => {
    if (app === undefined) throw new Error('audit() is not installed: add it to the modules of createApp.');
    return app;
  };
  let sensitive: ReadonlySet<string> | undefined;
  const sink = auditSink({ now: () => installed().clock.now() }, () => (sensitive ??= sensitiveColumns(installed())));
  return {
    name: 'audit',
    models: [auditEntries, auditChain],
    migrations: [initial],
    commands: [auditCommand(() => sink)],
    admin: auditAdmin(() => installed().users),
    install(created) {
      app = created;
      created.registry.audit = sink;
    },
  };
}

/** Columns that some model marks as sensitive are masked in every entry, wherever the name appears. */
function sensitiveColumns({ modules }: App): ReadonlySet<string> {
  const models = modules.flatMap((module) => (module.models ?? []) as readonly Model[]);
  return new Set(
    models.flatMap(({ columns }) =>
      Object.entries(columns)
        .filter(([, column]) => column.settings.sensitive)
        .map(([name]) => name),
    ),
  );
}
