import type { Command as CommanderCommand } from 'commander';
import { listRecords, pruneRecords, removeRecord, type IdempotencyRecord } from '../../http/idempotency/record-store.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { table } from '../terminal/terminal.ts';

const LIST_MAX = 1000;

/** `kit idempotency list|resolve|prune`. */
export const idempotencyCommand: CoreCommand = (command, context) => {
  addList(command, context);
  addRelease(command, context);
  addPrune(command, context);
};

function addList(command: CommanderCommand, context: CliContext): void {
  command
    .command('list')
    .description('show the newest records; responses are not shown')
    .option('--key <key>', 'only this key')
    .option('--state <state>', 'running or complete')
    .option('--limit <count>', 'how many', '50')
    .action(async ({ key, state, limit }: { key?: string; state?: string; limit: string }) => {
      if (state !== undefined && state !== 'running' && state !== 'complete')
        return context.fail(`--state is running or complete, not ${JSON.stringify(state)}.`);
      const count = Number(limit);
      if (!Number.isInteger(count) || count < 1 || count > LIST_MAX)
        return context.fail(`--limit must be an integer from 1 to ${LIST_MAX}.`);
      const app = await context.app();
      const records = await listRecords(app.db, { key, state }, count);
      if (context.json) return context.print(JSON.stringify(records.map(asJson), null, 2));
      if (records.length === 0) return context.print('No records.');
      const now = app.clock.now();
      const rows = records.map((record) => [
        record.scope_hash.slice(0, 12),
        record.key,
        stateOf(record, now),
        record.status === null ? '-' : String(record.status),
        record.operation,
        record.caller,
        record.created_at.toISOString(),
      ]);
      for (const line of table(['ID', 'KEY', 'STATE', 'STATUS', 'OPERATION', 'CALLER', 'CREATED'], rows)) context.print(line);
    });
}

function addRelease(command: CommanderCommand, context: CliContext): void {
  command
    .command('release')
    .argument('<id-or-key>', 'the beginning of an ID of the list (at least 8 characters), or a key')
    .description('release a key so that it can be used again; a running attempt can no longer commit')
    .action(async (given: string) => {
      const { db } = await context.app();
      const found = await listRecords(db, { key: given }, 2);
      const records = found.length > 0 ? found : await byId(context, given);
      const [record] = records;
      if (record === undefined) context.fail(`No record has the key or ID ${JSON.stringify(given)}.`);
      if (records.length > 1) context.fail('Several records match: give the ID of one. kit idempotency list --key shows them.');
      await removeRecord(db, record.scope_hash);
      context.print(context.json ? JSON.stringify({ released: record.scope_hash }) : `The key ${record.key} is free again.`);
    });
}

async function byId(context: CliContext, given: string): Promise<IdempotencyRecord[]> {
  if (!/^[0-9a-f]{8,64}$/.test(given)) return [];
  const { db } = await context.app();
  return listRecords(db, { idStart: given }, 2);
}

function addPrune(command: CommanderCommand, context: CliContext): void {
  command
    .command('prune')
    .description('delete expired records; a running application does this automatically')
    .action(async () => {
      const removed = await pruneRecords((await context.app()).db);
      context.print(context.json ? JSON.stringify({ removed }) : `${removed} expired records removed.`);
    });
}

function stateOf({ state, lease_until }: IdempotencyRecord, now: Date): string {
  return state === 'running' && lease_until <= now ? 'abandoned' : state;
}

function asJson({ body: _body, headers: _headers, token: _token, fingerprint: _fingerprint, ...record }: IdempotencyRecord): object {
  return record;
}
