import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runScript } from '../clients/run-script.ts';

const root = join(import.meta.dirname, '../..');

/** The document of the orders example as today's tools read it. */
export async function ordersDocument(folder: string): Promise<string> {
  const file = join(folder, 'written.json');
  const kit = join(root, 'packages/kit/bin/kit.js');
  const args = ['--conditions=source', kit, 'openapi', '--spec', '3.1', '--out', file];
  const { code, stderr } = await runScript(process.execPath, args, join(root, 'examples/orders'), { NODE_OPTIONS: '' });
  if (code !== 0) throw new Error(stderr);
  return readFileSync(file, 'utf8');
}
