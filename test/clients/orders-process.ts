import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface OrdersProcess {
  readonly url: string;
  readonly key: string;
  /** SIGKILL: nothing is finished. */
  kill(): Promise<void>;
}

/** Starts the orders example on a port; its data is in the folder. With a folder for clients, both are written there first. */
export async function startOrders(folder: string, port: number, clients?: string): Promise<OrdersProcess> {
  const script = join(import.meta.dirname, 'serve-orders.ts');
  const child: ChildProcess = spawn(
    process.execPath,
    ['--conditions=source', '--disable-warning=ExperimentalWarning', script, String(port), ...(clients === undefined ? [] : [clients])],
    {
      env: { ...process.env, NODE_OPTIONS: '', DATA_FOLDER: folder, LOG_LEVEL: 'error', DATABASE_URL: '', NODE_ENV: 'development' },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout! });
  const [line] = (await Promise.race([
    once(lines, 'line'),
    exited.then(() => Promise.reject(new Error('The orders example ended before it listened.'))),
  ])) as [string];
  const { url, key } = JSON.parse(line) as { url: string; key: string };
  return {
    url,
    key,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
