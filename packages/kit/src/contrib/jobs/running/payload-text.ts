import { jobErrors } from '../errors.ts';
import { permanent } from '../declare/failure.ts';
import { PAYLOAD_BYTES_MAX } from '../models.ts';
import { jsonTextOf } from '../declare/stored-json.ts';

/**
 * JSON text of what a job or a step returned; nothing is null. A value that cannot be stored fails the job permanently: another attempt would
 * only repeat the work that led to it.
 */
export function payloadText(what: string, value: unknown): string | null {
  if (value === undefined) return null;
  const json = jsonTextOf(value);
  if ('fault' in json) throw permanent(jobErrors.result_not_storable({ message: `${what} cannot be stored: ${json.fault}` }));
  if (Buffer.byteLength(json.text) > PAYLOAD_BYTES_MAX) throw permanent(jobErrors.payload_too_large());
  return json.text;
}
