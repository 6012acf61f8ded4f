import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { uploadApp } from './upload-app.ts';

const MIB = 1024 * 1024;
/** Memory is measured after each of these. */
const LOOK_EVERY = 16 * MIB;

export interface LargeFileReport {
  readonly state: string;
  readonly size: number;
  /** Most heap and buffers in use, above what was before; the sender's own included, garbage not. */
  readonly peakBytes: number;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function memoryInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Sends a file that is never in memory as a whole through the disk store, completes and fetches it. */
export async function sendLargeFile(mebibytes: number): Promise<LargeFileReport> {
  await using app = await uploadApp({ policy: { bytesMax: mebibytes * MIB } });
  const chunk = Buffer.alloc(MIB, 'kit');
  const hash = createHash('sha256');
  for (let sent = 0; sent < mebibytes; sent += 1) hash.update(chunk);
  const checksum = hash.digest('base64');
  const fields = { filename: 'large.bin', content_type: 'application/octet-stream', size: mebibytes * MIB, checksum_sha256: checksum };
  const { body } = await app.call<{ id: string; url: string; headers: Record<string, string> }>('POST', '/v1/uploads', fields);
  const address = await app.test.listen();
  const before = memoryInUse();
  let peakBytes = 0;
  let passed = 0;
  const look = (bytes: number) => {
    passed += bytes;
    if (passed < LOOK_EVERY) return;
    passed = 0;
    peakBytes = Math.max(peakBytes, memoryInUse() - before);
  };
  const request = httpRequest(`${address}${body.url}`, { method: 'PUT', headers: body.headers });
  const answered = once(request, 'response');
  for (let sent = 0; sent < mebibytes; sent += 1) {
    if (!request.write(chunk)) await once(request, 'drain');
    look(MIB);
  }
  request.end();
  const [response] = (await answered) as [NodeJS.ReadableStream & { statusCode: number }];
  response.resume();
  if (response.statusCode !== 204) throw new Error(`The file was refused with ${response.statusCode}.`);
  const completed = await app.call<{ state: string; size: number }>('POST', `/v1/uploads/${body.id}/complete`);
  look(LOOK_EVERY);
  const { body: read } = await app.call<{ url: string }>('GET', `/v1/uploads/${body.id}?url=true`);
  const fetched = createHash('sha256');
  for await (const part of (await fetch(address + read.url)).body ?? []) {
    fetched.update(part);
    look(part.length);
  }
  if (fetched.digest('base64') !== checksum) throw new Error('Other bytes came back.');
  return { ...completed.body, peakBytes };
}
