import type { Command as CommanderCommand } from 'commander';
import type { Command, CommandContext } from '../../app/declare/command.ts';
import { wholeNumberOption } from '../../app/declare/command-options.ts';
import type { App } from '../../app/declare/module.ts';
import { findOrphans, processUploads, removeOrphans } from './life/clean.ts';

interface CleanOptions {
  readonly limit: string;
  readonly orphans?: boolean;
  readonly remove?: boolean;
}

/** `kit uploads clean`. */
export const uploadsCommand: Command<App> = {
  name: 'uploads',
  summary: 'scan, expire and delete uploads that are due',
  configure: addClean,
};

function addClean(command: CommanderCommand, context: CommandContext<App>): void {
  command
    .command('clean')
    .description('expire incomplete uploads, scan quarantined uploads, delete objects that are due')
    .option('--limit <count>', 'maximum number of each', '1000')
    .option('--orphans', 'list orphaned objects: objects without an upload that can no longer be completed (after one day)')
    .option('--remove', 'with --orphans: delete them')
    .action(async ({ limit: given, orphans = false, remove = false }: CleanOptions) => {
      const limit = wholeNumberOption('--limit', given, 1);
      if (remove && !orphans) context.fail('--remove requires --orphans.');
      const { db } = await context.app();
      const report = await processUploads(db, { limit });
      const found = orphans ? await findOrphans(db, limit) : [];
      const removal = remove ? await removeOrphans(db, found) : { removed: 0, failed: 0 };
      const failed = report.failed + removal.failed;
      if (context.json) {
        const listed = found.map(({ key, size, modifiedAt }) => ({ key, size, modified_at: modifiedAt }));
        context.print(JSON.stringify({ ...report, failed, ...(orphans ? { orphans: listed, orphans_removed: removal.removed } : {}) }));
      } else {
        context.print(`${report.expired} expired, ${report.scanned} scanned, ${report.removed} objects removed, ${failed} failed.`);
        for (const { key, size, modifiedAt } of found) context.print(`orphan ${key} (${size} bytes, ${modifiedAt.toISOString()})`);
        if (orphans)
          context.print(
            remove ? `${removal.removed} orphans removed.` : `${found.length} orphans found. Remove them with --orphans --remove.`,
          );
      }
      if (failed > 0) context.fail(`${failed} failed; the next run retries them. The log has the cause.`);
    });
}
