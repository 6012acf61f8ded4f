import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Connections } from '../data/connections.ts';
import type { Settings } from '../declare/config.ts';

/** After the deadline handlers see an aborted signal and get this long to answer before their connections are cut. */
const LAST_GRACE_MS = 250;

interface Closing {
  /** Tells open streams to end. */
  readonly endStreams: () => void;
  /** The deadline has passed: handlers see an aborted signal, then their connections are closed. */
  readonly giveUp: () => void;
}

/** Stops taking connections, lets the requests under way end until the deadline, then closes what is left. */
export async function closeServer(fastify: FastifyInstance, connections: Connections, settings: Settings, closing: Closing): Promise<void> {
  const { shutdownDelayMs, shutdownTimeoutMs } = settings;
  const { server } = fastify;
  if (server.listening) {
    connections.endWithResponse();
    if (shutdownDelayMs > 0) await delay(shutdownDelayMs);
  }
  const deadline = setTimeout(() => {
    closing.giveUp();
    setTimeout(() => server.closeAllConnections(), LAST_GRACE_MS);
  }, shutdownTimeoutMs);
  const stopClosing = server.listening ? await drain(connections, settings, closing) : undefined;
  try {
    await fastify.close();
  } finally {
    stopClosing?.();
    clearTimeout(deadline);
  }
}

/** No new connections; those without a request have a grace to get one, and are closed from then on. */
async function drain(connections: Connections, settings: Settings, { endStreams }: Closing): Promise<() => void> {
  await connections.stopListening();
  endStreams();
  await connections.empty(Math.min(settings.shutdownIdleMs, settings.shutdownTimeoutMs));
  return connections.closeIdle();
}

/** Waits for the work, and no longer than this. */
export async function settledWithin(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const timeIsUp = Promise.withResolvers<void>();
  const timer = setTimeout(() => timeIsUp.resolve(), milliseconds);
  await Promise.race([work, timeIsUp.promise]);
  clearTimeout(timer);
}
