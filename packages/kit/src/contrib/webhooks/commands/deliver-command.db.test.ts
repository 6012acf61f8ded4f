import { Command } from 'commander';
import { expect, test } from 'vitest';
import { describeOutbox, type Outbox } from '../../../../test/webhooks/outbox.ts';
import type { App, CommandContext } from '../../../app/index.ts';
import { deliverDue, startWorker } from '../delivery/deliver.ts';
import { addDeliver } from './deliver-command.ts';

async function run(outbox: Outbox, args: readonly string[]): Promise<string[]> {
  const printed: string[] = [];
  const context = {
    app: async () => ({ databases: { default: outbox.db }, monitor: async () => [] }) as unknown as App,
    print: (text: string) => void printed.push(text),
    json: false,
    stderr: { write: () => undefined },
    fail(message: string): never {
      throw new Error(message);
    },
  } as unknown as CommandContext<App>;
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addDeliver(program, context);
  program.commands[0]?.exitOverride().configureOutput({ writeErr: () => undefined });
  await program.parseAsync(['node', 'kit', 'deliver', ...args]);
  return printed;
}

describeOutbox('the command deliver', (outbox) => {
  test('runs once, sends at most --limit and prints what it did', async () => {
    const mine = outbox.owner();
    await outbox.endpoint({ owner: mine });
    for (let n = 0; n < 3; n++) await outbox.publish('order.paid', { owner: mine });
    expect(await run(outbox, ['--limit', '2'])).toEqual(['succeeded=2 retrying=0 failed=0 disabled_endpoints=0 lost_claims=0']);
    expect(await run(outbox, ['--timeout', '5', '--concurrency', '3'])).toEqual([
      'succeeded=1 retrying=0 failed=0 disabled_endpoints=0 lost_claims=0',
    ]);
    expect(outbox.receiver.of(`/${mine}`)).toHaveLength(3);
  });

  test('with --loop it works until SIGTERM and prints what it did', async () => {
    const mine = outbox.owner();
    await outbox.endpoint({ owner: mine });
    outbox.receiver.answer(`/${mine}`, (_request, response) => {
      response.writeHead(200).end();
      process.emit('SIGTERM');
    });
    await outbox.publish('order.paid', { owner: mine });
    expect(await run(outbox, ['--loop', '--interval', '0.05'])).toEqual([
      'succeeded=1 retrying=0 failed=0 disabled_endpoints=0 lost_claims=0',
    ]);
  });

  test('an unknown database and a bad number are refused with a sentence', async () => {
    await expect(run(outbox, ['--database', 'reports'])).rejects.toThrow('There is no database "reports"');
    for (const [option, text] of [
      ['--limit', '0'],
      ['--limit', '1.5'],
      ['--limit', '1e3'],
      ['--limit', ''],
      ['--limit', '-1'],
      ['--concurrency', '0.5'],
      ['--concurrency', '10001'],
      ['--timeout', '0'],
      ['--timeout', '601'],
      ['--timeout', '1e9'],
      ['--interval', '0.001'],
      ['--interval', '99999'],
      ['--interval', 'Infinity'],
    ] as const)
      await expect(run(outbox, [option, text])).rejects.toThrow(/(Give a number of seconds|Enter an integer) from/);
  });

  test('a worker with half a slot, or a deadline that no timer can hold, is refused', async () => {
    for (const options of [
      { concurrency: 0.5 },
      { concurrency: 0 },
      { timeoutMs: 2 ** 40 },
      { pollIntervalMs: Number.NaN },
      { limit: 1.5 },
    ])
      await expect(deliverDue(outbox.db, options)).rejects.toThrow(/deliverDue\(\): \w+ is /);
    await expect(startWorker(outbox.db, { concurrency: 0, timeoutMs: 0 })).rejects.toThrow(/concurrency is 0; .*timeoutMs is 0; /s);
  });
});
