import { readFileSync, readdirSync } from 'node:fs';
import { join, sep } from 'node:path';

export const TEMPLATES = ['minimal', 'full', 'b2b'] as const;
export type TemplateName = (typeof TEMPLATES)[number];

/** How the project gets the toolkit: a version on the registry, or a tarball that is copied into the project. */
export interface ToolkitSource {
  /** As `dependencies` of package.json has it. */
  readonly spec: string;
  /** Copied to `TARBALL` in the project, where a Docker build finds it. */
  readonly tarball?: string;
}

/** In the root of the project. */
export const TARBALL = 'kit.tgz';

export interface ProjectFile {
  /** Relative to the project, with `/`. */
  readonly path: string;
  readonly text: string;
}

interface TemplateManifest {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** The packages of a template besides the toolkit. */
export function dependenciesOf(templates: string, template: TemplateName): string[] {
  const { dependencies, devDependencies } = readManifest(templates, template);
  return [...Object.keys(dependencies), ...Object.keys(devDependencies)];
}

/** Every file of a new project. `toolkit` is its name and where it comes from. `common` holds what all templates share; a template may replace a file of it. */
export function projectFiles(
  templates: string,
  template: TemplateName,
  name: string,
  toolkit: Readonly<Record<string, string>>,
): ProjectFile[] {
  const files = new Map<string, string>();
  for (const folder of ['common', template])
    for (const path of listFiles(join(templates, folder)))
      files.set(placeOf(path), readFileSync(join(templates, folder, path), 'utf8').replaceAll('{{name}}', name));
  files.set('package.json', manifestText(readManifest(templates, template), name, toolkit));
  return [...files].map(([path, text]) => ({ path, text })).sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Templates do not name the toolkit: in this repository it is called as a package of another project on the registry. */
function manifestText(manifest: TemplateManifest, name: string, toolkit: Readonly<Record<string, string>>): string {
  return `${JSON.stringify({ ...manifest, name, dependencies: { ...toolkit, ...manifest.dependencies } }, null, 2)}\n`;
}

function readManifest(templates: string, template: TemplateName): TemplateManifest {
  return JSON.parse(readFileSync(join(templates, template, '_package.json'), 'utf8')) as TemplateManifest;
}

/** npm does not publish `.gitignore` and reads a nested `package.json` as a package: in a template such names begin with `_`. */
function placeOf(path: string): string {
  return path.replace(/^_package\.json$/, 'package.json').replace(/^_(?=\w+ignore$)/, '.');
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .split(sep)
        .join('/'),
    );
}
