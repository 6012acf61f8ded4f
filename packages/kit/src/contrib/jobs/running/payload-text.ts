import { jobErrors } from '../errors.ts';
import { permanent } from '../failure.ts';
import { PAYLOAD_BYTES_MAX } from '../models.ts';

/** JSON text of what a job or a step returned; nothing is null. */
export function payloadText(value: unknown): string | null {
  if (value === undefined) return null;
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return null;
  if (Buffer.byteLength(text) > PAYLOAD_BYTES_MAX) throw permanent(jobErrors.payload_too_large());
  return text;
}
