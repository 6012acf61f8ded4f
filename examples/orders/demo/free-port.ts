import { createServer } from 'node:net';

/** A port for a part of the demo, and why it is this one where that is not obvious. */
export interface ChosenPort {
  readonly port: number;
  /** Empty for the default. */
  readonly reason: string;
}

/** `PORT` where it is set: taken or not a port, the start fails. Otherwise `preferred`, or a free one where that is taken. */
export async function apiPort(preferred: number, given: string | undefined): Promise<ChosenPort> {
  if (given === undefined || given === '') {
    const port = await freePort(preferred);
    return { port, reason: port === preferred ? '' : `${preferred} is taken; PORT=… chooses another` };
  }
  const port = Number(given);
  if (!/^\d{1,5}$/.test(given) || port > 65_535)
    throw new PortRefused(`PORT is ${JSON.stringify(given)}; a port is a number from 0 to 65535.`);
  const free = await tryPort(port);
  if (free === undefined) throw new PortRefused(`PORT is ${port}, and another program listens there. Stop it, or choose another port.`);
  return { port: free, reason: 'from PORT' };
}

/** The user can put it right: the message says how. */
export class PortRefused extends Error {
  readonly code = 'port_refused';
}

/** `preferred` when it is free, else a free port of loopback. */
export async function freePort(preferred: number): Promise<number> {
  return (await tryPort(preferred)) ?? (await tryPort(0)) ?? preferred;
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((done) => {
    const probe = createServer();
    probe.once('error', () => done(undefined));
    probe.listen(port, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => done(address !== null && typeof address === 'object' ? address.port : undefined));
    });
  });
}
