import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A port on loopback that nothing listens on, for a program that has to be told one. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await new Promise((closed) => probe.close(closed));
  return port;
}
