import { copyFile, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { installPackages } from './install-packages.ts';
import { dependenciesOf, projectFiles, TARBALL, type ProjectFile, type TemplateName, type ToolkitSource } from './project-files.ts';
import { projectNameFault } from './project-name.ts';
import { ProjectRefused } from './project-refused.ts';

export interface NewProjectOptions {
  /** Absolute. Its last part is the name of the project. */
  readonly folder: string;
  readonly template: TemplateName;
  /** The folder of the templates. */
  readonly templates: string;
  /** The name of the toolkit's package, and where the project gets it from: asked once folder and name were accepted. */
  readonly toolkit: { readonly name: string; readonly source: (scratch: string) => ToolkitSource };
  readonly install: boolean;
  readonly signal: AbortSignal;
  /** Around each step: shows what is being done and how long it took. */
  readonly step: <T>(label: string, work: () => Promise<T>) => Promise<T>;
}

export interface NewProject {
  readonly folder: string;
  readonly name: string;
  readonly files: readonly string[];
}

/** A repository that was just cloned or initialized may become the project. */
const KEPT = new Set(['.git']);

/** Creates a project. Whatever goes wrong, nothing of it is left. */
export async function newProject(options: NewProjectOptions): Promise<NewProject> {
  const { folder, template, templates } = options;
  const name = basename(folder);
  const fault = projectNameFault(name, [options.toolkit.name, ...dependenciesOf(templates, template)]);
  if (fault !== undefined) throw new ProjectRefused(fault);
  await refuseOccupied(folder);
  const scratch = await mkdtemp(join(tmpdir(), 'kit-new-'));
  const created = await mkdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    throw new ProjectRefused(`${folder} cannot be created: ${error.message}`, { cause: error });
  });
  try {
    const { spec, tarball } = options.toolkit.source(scratch);
    const files = projectFiles(templates, template, name, { [options.toolkit.name]: spec });
    await options.step(`${files.length} files from the template ${template}`, () => writeFiles(folder, files, tarball));
    if (options.install) await options.step('packages installed', () => installPackages(folder, options.signal));
    if (options.signal.aborted) throw new ProjectRefused('Interrupted. Nothing was created.');
    return { folder, name, files: files.map(({ path }) => path) };
  } catch (error) {
    await removeCreated(folder, created);
    throw error;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function refuseOccupied(folder: string): Promise<void> {
  const found = await stat(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new ProjectRefused(`${folder} cannot be used: ${error.message}`, { cause: error });
  });
  if (found === undefined) return;
  if (!found.isDirectory()) throw new ProjectRefused(`${folder} is a file. Choose another name.`);
  const entries = (await readdir(folder)).filter((entry) => !KEPT.has(entry));
  if (entries.length > 0)
    throw new ProjectRefused(
      `${folder} is not empty (${entries.slice(0, 3).join(', ')}${entries.length > 3 ? ', …' : ''}). Choose another folder.`,
    );
}

async function writeFiles(folder: string, files: readonly ProjectFile[], tarball: string | undefined): Promise<void> {
  for (const { path, text } of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text, { flag: 'wx' });
  }
  if (tarball !== undefined) await copyFile(tarball, join(folder, TARBALL));
}

/** `created` is the topmost folder that did not exist before; undefined where the project's own folder did. */
async function removeCreated(folder: string, created: string | undefined): Promise<void> {
  if (created !== undefined) return rm(created, { recursive: true, force: true });
  for (const entry of await readdir(folder)) if (!KEPT.has(entry)) await rm(join(folder, entry), { recursive: true, force: true });
}
