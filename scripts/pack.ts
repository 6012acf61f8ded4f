// Builds the published packages and packs them into dist/, where `npm install` takes them from: npm run pack
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const target = join(root, 'dist');

if (spawnSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' }).status !== 0) process.exit(1);
rmSync(target, { recursive: true, force: true });
mkdirSync(target);
for (const file of globSync('packages/*/package.json', { cwd: root }).sort()) {
  const manifest = JSON.parse(readFileSync(join(root, file), 'utf8')) as { name: string; version: string; private?: boolean };
  if (manifest.private === true) continue;
  // A name without the version, so that a command in a guide stays true.
  const name = `${manifest.name.replace('@', '').replace('/', '-')}.tgz`;
  const packed = spawnSync('npm', ['pack', '--silent', '--pack-destination', target], { cwd: join(root, dirname(file)), encoding: 'utf8' });
  if (packed.status !== 0) throw new Error(`npm pack failed: ${packed.stderr}`);
  renameSync(join(target, packed.stdout.trim()), join(target, name));
  console.log(`${manifest.name} ${manifest.version} is in ${join(target, name)}`);
}
