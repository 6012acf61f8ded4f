import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { job } from 'kit/contrib/jobs';
import { z } from 'zod';
import { dataFolder } from '../config.ts';
import { countOrders, orderChunks } from './store.ts';

/** A moment per order, so that the progress bar of a dozen orders can be watched. */
const PAUSE_MS = 200;

/** A CSV file of all orders. Its name is the job's id: an attempt that is repeated writes the same file again. */
export const exportOrders = job('orders.export', {
  input: z.object({}),
  result: z.object({ file: z.string(), orders: z.int() }),
  queue: 'exports',
  concurrency: 2,
  async run({ id, db, progress, signal }) {
    const total = await countOrders(db);
    const lines = ['id,item,quantity,total,currency,status,created_at'];
    for await (const chunk of orderChunks(db)) {
      for (const order of chunk) {
        lines.push(
          [order.id, order.item, order.quantity, order.total, order.currency, order.status, order.created_at.toISOString()]
            .map(cell)
            .join(','),
        );
        await progress(((lines.length - 1) / Math.max(total, 1)) * 95, `${lines.length - 1} of ${total} orders`);
        await pause(PAUSE_MS, undefined, { signal });
      }
    }
    const folder = join(dataFolder, 'exports');
    await mkdir(folder, { recursive: true });
    const file = join(folder, `${id}.csv`);
    await writeFile(`${file}.part`, `${lines.join('\n')}\n`);
    await rename(`${file}.part`, file);
    return { file: `${id}.csv`, orders: lines.length - 1 };
  },
});

/** Quoted where it must be. What a spreadsheet would take for a formula is made text, at the start and after other separators than ours. */
function cell(value: string | number): string {
  const text = String(value).replaceAll(/(?<=^|[;\t\r\n])(?=[ \u00A0]*[=+\-@＝＋－＠])/gu, "'");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
