import { noSuchDatabase } from '../../db/open/named-database.ts';
import type { Command as CommanderCommand } from 'commander';
import type { Command, CommandContext } from '../../app/declare/command.ts';
import { wholeNumberOption } from '../../app/declare/command-options.ts';
import type { App } from '../../app/declare/module.ts';
import type { AuditSink } from '../../auth/request/audit-sink.ts';
import type { Database } from '../../db/engine/db.ts';
import { pruneAudit } from './chain/prune.ts';
import { sealEntries } from './chain/seal.ts';
import { verifyChain, type VerifyChainOptions } from './chain/verify-chain.ts';

const DAY_MS = 86_400_000;
/** A century. */
const DAYS_MAX = 36_500;

/** `kit audit verify|seal|prune`. */
export const auditCommand: Command<App> = {
  name: 'audit',
  summary: 'verify the chain of audit entries, seal new ones, remove old ones',
  configure(command, context) {
    addVerify(command, context);
    addSeal(command, context);
    addPrune(command, context);
  },
};

function addVerify(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('verify')
    .description('seal new entries and read the whole chain; exit 1 and name the entry when one was changed, removed, moved or inserted')
    .option('--anchor <seq:hash>', 'also prove that this entry is still the one noted earlier')
    .option('--database <alias>', 'the database whose chain it is', 'default')
    .action(async ({ anchor, database }: { anchor?: string; database: string }) => {
      const noted = anchor === undefined ? {} : { anchor: readAnchor(anchor, context) };
      const db = databaseOf(await context.app(), database, context);
      const sealFailure = await sealEntries(db, { wait: true }).then(
        () => null,
        (error: unknown) => error,
      );
      const report = await verifyChain(db, noted);
      const head = `${report.head.seq}:${report.head.hash}`;
      if (context.json) {
        const fault =
          report.fault === null
            ? null
            : { seq: report.fault.seq === null ? null : String(report.fault.seq), message: report.fault.message };
        context.print(
          JSON.stringify({
            ok: report.ok,
            checked: report.checked,
            unsealed: report.unsealed.count,
            pruned_through: String(report.pruned_through),
            head,
            fault,
          }),
        );
      }
      if (report.fault !== null) context.fail(report.fault.message);
      if (sealFailure !== null) context.fail(`The chain is whole, but new entries cannot be sealed: ${messageOf(sealFailure)}`);
      if (context.json) return;
      const pruned = report.pruned_through === 0n ? '' : ` Entries up to ${report.pruned_through} were pruned.`;
      context.print(`The chain is whole: ${report.checked === 1 ? '1 entry' : `${report.checked} entries`} checked.${pruned}`);
      context.print(`Note this to prove it later (kit audit verify --anchor): ${head}`);
    });
}

function addSeal(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('seal')
    .description('move new entries into the chain; a running application does this automatically')
    .option('--database <alias>', 'the database whose entries they are', 'default')
    .action(async ({ database }: { database: string }) => {
      const sealed = await sealEntries(databaseOf(await context.app(), database, context), { wait: true });
      context.print(context.json ? JSON.stringify({ sealed }) : `${sealed} entries sealed.`);
    });
}

function addPrune(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('prune')
    .description('remove entries older than some days; the rest of the chain stays verifiable')
    .requiredOption('--days <days>', 'how many days to keep')
    .option('--force', 'also when some of them were changed or are missing; afterwards `kit audit verify` cannot show that')
    .option('--database <alias>', 'the database whose entries they are', 'default')
    .action(async ({ days, database, force = false }: { days: string; database: string; force?: boolean }) => {
      const kept = wholeNumberOption('--days', days, 1, DAYS_MAX);
      const app = await context.app();
      const db = databaseOf(app, database, context);
      const before = new Date(app.clock.now().getTime() - kept * DAY_MS);
      const removed = await pruneAudit(db, sinkOf(app), { before, by: 'kit audit prune', force });
      context.print(context.json ? JSON.stringify({ removed, before }) : `${removed} entries from before ${before.toISOString()} removed.`);
    });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function sinkOf({ registry }: App): AuditSink {
  if (registry.audit === null) throw new Error('No module records audit entries: add audit() to the modules of createApp.');
  return registry.audit;
}

function databaseOf({ databases }: App, alias: string, context: CommandContext<App>): Database {
  const database = databases[alias];
  if (database === undefined) context.fail(noSuchDatabase(alias, Object.keys(databases)));
  return database;
}

function readAnchor(text: string, context: CommandContext<App>): NonNullable<VerifyChainOptions['anchor']> {
  const [, seq, hash] = /^(\d{1,19}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq === undefined || hash === undefined) context.fail('--anchor is an entry as `kit audit verify` printed it: <seq>:<hash>.');
  return { seq: BigInt(seq), hash };
}
