// What `kit new <name> --template <template>` writes, without installing: `node new-project.ts full helpdesk`. The packages are those of this clone.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectFiles, type TemplateName } from '../../packages/kit/src/cli/new/project-files.ts';

const [template = 'minimal', name = 'app'] = process.argv.slice(2);
for (const { path, text } of projectFiles(join(import.meta.dirname, '../../packages/kit/templates'), template as TemplateName, name, {})) {
  mkdirSync(dirname(join(name, path)), { recursive: true });
  writeFileSync(join(name, path), text);
}
