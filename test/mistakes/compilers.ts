import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type ts from 'kit-typescript-5.9/node_modules/typescript/lib/typescript.js';
import { API } from 'typescript/unstable/sync';

/** What a compiler reports about a file: where, and the first line of its message. */
export interface Reported {
  readonly file: string;
  readonly start: number;
  readonly end: number;
  readonly code: number;
  readonly message: string;
}

/** A compiler, asked about some files of a project. What they import is not checked, which keeps a run to seconds. */
export interface Compiler {
  readonly name: string;
  readonly errors: (config: string, files: readonly string[]) => Reported[];
  /** With `declaration`: types that a declaration file cannot name. */
  readonly declarationErrors: (config: string, files: readonly string[]) => Reported[];
}

type Kind = 'getSemanticDiagnostics' | 'getDeclarationDiagnostics';

function byTypeScript7(kind: Kind, config: string, files: readonly string[]): Reported[] {
  const api = new API({ cwd: dirname(config) });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`${config} cannot be opened.`);
    return files.flatMap((file) =>
      project.program[kind](file).map(({ pos, end, code, text }) => ({ file, start: pos, end, code, message: firstLine(text) })),
    );
  } finally {
    api.close();
  }
}

/** The compiler before the rewrite, which many projects still use. Its folder keeps its `tsc` apart from ours. */
export function loadTypeScript59(): typeof ts {
  return createRequire(join(import.meta.dirname, 'typescript-5.9', 'package.json'))('typescript') as typeof ts;
}

const programs = new Map<string, ts.Program>();

function byTypeScript59(kind: Kind, config: string, files: readonly string[]): Reported[] {
  const compiler = loadTypeScript59();
  let program = programs.get(config);
  if (program === undefined) {
    const { options, fileNames } = compiler.parseJsonConfigFileContent(
      compiler.readConfigFile(config, (path) => compiler.sys.readFile(path)).config,
      compiler.sys,
      dirname(config),
    );
    programs.set(config, (program = compiler.createProgram(fileNames, options)));
  }
  return files.flatMap((file) => {
    const source = program.getSourceFile(file);
    if (source === undefined) throw new Error(`${file} is not part of ${config}.`);
    return program[kind](source).map(({ start = 0, length = 0, code, messageText }) => ({
      file,
      start,
      end: start + length,
      code,
      message: firstLine(typeof messageText === 'string' ? messageText : messageText.messageText),
    }));
  });
}

function firstLine(text: string): string {
  return text.split('\n')[0] as string;
}

export const typeScript7: Compiler = {
  name: 'TypeScript 7.0',
  errors: (config, files) => byTypeScript7('getSemanticDiagnostics', config, files),
  declarationErrors: (config, files) => byTypeScript7('getDeclarationDiagnostics', config, files),
};

export const typeScript59: Compiler = {
  name: 'TypeScript 5.9',
  errors: (config, files) => byTypeScript59('getSemanticDiagnostics', config, files),
  declarationErrors: (config, files) => byTypeScript59('getDeclarationDiagnostics', config, files),
};
