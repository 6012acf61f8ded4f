import { createHmac, createSecretKey } from 'node:crypto';
import { Pool } from 'undici';

export const SECRET = Buffer.alloc(32, 7);
export const DATA = { note: 'x'.repeat(940) };
/** What every delivery carries: about 1 KB. */
export const MESSAGE = { type: 'order.paid', timestamp: '2026-01-02T03:04:05.000Z', data: DATA };

/** Signs and POSTs, and stores nothing. */
export function bareLoop(
  origin: string,
  concurrency: number,
): { send: (message?: object) => Promise<void>; run: (count: number) => Promise<void>; close: () => Promise<void> } {
  const key = createSecretKey(SECRET);
  const pool = new Pool(origin, { connections: concurrency });
  const ready = Buffer.from(JSON.stringify(MESSAGE));
  const send = async (given?: object): Promise<void> => {
    const body = given === undefined ? ready : Buffer.from(JSON.stringify(given));
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(body).digest('base64');
    const headers = {
      'content-type': 'application/json',
      'webhook-id': 'msg_1',
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    };
    const response = await pool.request({ path: '/', method: 'POST', headers, body });
    await response.body.dump();
    if (response.statusCode !== 204) throw new Error(`the receiver answered ${response.statusCode}`);
  };
  return {
    send,
    async run(count) {
      let left = count;
      const lane = async (): Promise<void> => {
        while (left-- > 0) await send();
      };
      await Promise.all(Array.from({ length: concurrency }, lane));
    },
    close: () => pool.destroy(),
  };
}
