// Builds the published packages and packs them into dist/, where `npm install` takes them from: npm run pack
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildAndStage, packStaged } from './release/build-and-stage.ts';
import { WORKSPACE_NAMES } from './release/public-names.ts';

const target = join(import.meta.dirname, '../dist');
rmSync(target, { recursive: true, force: true });
for (const staged of buildAndStage(WORKSPACE_NAMES, join(target, 'staged'))) {
  const { name, version, tarball } = packStaged(staged, target);
  console.log(`${name} ${version} is in ${tarball}`);
}
