import { createHash } from 'node:crypto';
import { createWriteStream, mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { serving } from '../harness/server-process.ts';

const [folder = ''] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
let count = 0;

const server = createServer((request, response) => {
  const hash = createHash('sha256');
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  const file = createWriteStream(join(folder, `${(count += 1)}`), { flush: true });
  pipeline(request, hashing, file).then(
    () => response.writeHead(hash.digest('base64') === request.headers['x-checksum'] ? 204 : 422).end(),
    () => response.destroy(),
  );
});
server.listen(0, '127.0.0.1', () => serving((server.address() as AddressInfo).port));
