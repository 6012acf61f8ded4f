import { Readable } from 'node:stream';
import type { KitError } from '../../../errors/kit-error.ts';
import { uploadErrors } from '../errors.ts';

/** What is read of a response of the store. It may be cut off after its headers. */
export async function whole<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw unreachable('reading a response', error);
  }
}

/** An object as it comes. Who stops reading ends the request. */
export function guarded(body: Readable): Readable {
  // Reported by `pieces`.
  body.on('error', () => undefined);
  return Readable.from(pieces(body), { objectMode: false }).once('close', () => body.destroy());
}

async function* pieces(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of body) yield piece as Uint8Array;
  } catch (error) {
    throw unreachable('reading an object', error);
  }
}

/** Names the operation and the code of the failure, nothing else. */
export function unreachable(operation: string, error: unknown): KitError {
  return uploadErrors.store_unavailable({ message: `The upload store cannot be reached: ${operation} failed (${reasonOf(error)}).` });
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { readonly code?: string; readonly message?: string };
  return code ?? (message !== undefined && message.startsWith('The credentials file ') ? message : 'unknown');
}
