// Writes the reference pages that are made from the sources: npm run docs:reference
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { referencePages, root } from './reference-pages.ts';

for (const { path, text } of await referencePages()) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
  console.log(path);
}
