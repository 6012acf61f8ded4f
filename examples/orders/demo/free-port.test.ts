import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { apiPort } from './free-port.ts';

async function taken(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test('PORT decides, and the panel says so', async () => {
  const port = await taken();
  expect(await apiPort(port, '0')).toEqual({ port: expect.any(Number) as number, reason: 'from PORT' });
  await expect(apiPort(3000, String(port))).rejects.toThrow(`PORT is ${port}, and another program listens there.`);
});

test('without PORT a taken default gives way to a free port, with the reason', async () => {
  const port = await taken();
  const chosen = await apiPort(port, undefined);
  expect(chosen.port).not.toBe(port);
  expect(chosen.reason).toBe(`${port} is taken; PORT=… chooses another`);
});

test.each(['x', '70000', '-1', '3000 '])('PORT=%j is refused with a sentence', async (given) => {
  await expect(apiPort(3000, given)).rejects.toThrow('a port is a number from 0 to 65535');
});
