import type { Command, CommandContext } from '../../app/declare/command.ts';
import type { App } from '../../app/declare/module.ts';
import type { AuditEntry } from '../../auth/request/audit-sink.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';
import { releaseLegalHold, setLegalHold } from '../../db/subjects/erasure-state.ts';
import { writeExport } from './write-export.ts';

export interface TenantDataCommands {
  /** Who audit entries say has done it: `kit tenant`. */
  readonly program: string;
  /** The tenant with this slug or id; throws where there is none. One that was deleted is found by its id while its rows are here. */
  find(db: Db, name: string): Promise<{ readonly id: string; readonly slug: string }>;
}

/** `export`, `hold` and `release`, for whatever stores tenants. */
export function addTenantDataCommands(
  command: Parameters<Command<App>['configure']>[0],
  context: CommandContext<App>,
  { program, ...source }: TenantDataCommands,
): void {
  const find = (db: Db, name: string) => source.find(db, name);
  const show = (value: object, sentence: string): void => context.print(context.json ? JSON.stringify(value) : sentence);
  // For staff: a hold is nothing that the tenant is told of.
  const entry = (id: string, action: string, metadata: object = {}): AuditEntry => ({
    actor: program,
    action,
    target_type: 'tenant',
    target_id: id,
    metadata,
  });
  command
    .command('export <tenant>')
    .description('write every row and file of a tenant to a ZIP archive, with a manifest of counts and checksums')
    .requiredOption('--to <file>', 'the archive that is written')
    .action(async (name: string, { to }: { to: string }) => {
      const app = await context.app();
      const { id, slug } = await find(app.db, name);
      const rows = await writeExport(app, { kind: 'tenant', id }, { to, program, context });
      show({ file: to, rows }, `${rows} rows of ${slug} are in ${to}.`);
    });
  command
    .command('hold <tenant>')
    .description('keep the rows of a tenant as they are: nothing erases them')
    .requiredOption('--reason <text>', 'why, for those who read the list')
    .action(async (name: string, { reason }: { reason: string }) => {
      const { db, registry } = await context.app();
      const { id, slug } = await find(db, name);
      await db.transaction(async (tx) => {
        await setLegalHold(tx, { kind: 'tenant', id }, { reason, by: program });
        await registry.audit?.record(tx, [entry(id, 'tenant.held', { reason })]);
      }, CONFLICT_RETRIES);
      show({ held: id }, `The rows of ${slug} stay as they are.`);
    });
  command
    .command('release <tenant>')
    .description('end a legal hold')
    .action(async (name: string) => {
      const { db, registry } = await context.app();
      const { id, slug } = await find(db, name);
      const released = await db.transaction(async (tx) => {
        const done = await releaseLegalHold(tx, { kind: 'tenant', id });
        if (done) await registry.audit?.record(tx, [entry(id, 'tenant.released')]);
        return done;
      }, CONFLICT_RETRIES);
      if (!released) context.fail(`The tenant ${slug} has no legal hold.`);
      show({ released: id }, `The legal hold of ${slug} has ended.`);
    });
}
