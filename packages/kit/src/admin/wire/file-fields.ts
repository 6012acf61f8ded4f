import type { AdminResource, AdminUploads } from '../../app/admin/declaration.ts';
import type { AdminField, AdminFileTarget } from '../../app/admin/shapes.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';

/** Which fields of the forms take files, and where the page sends them. */
export class FileFields {
  readonly #table: string | undefined;
  readonly #targets: ReadonlyMap<string, AdminFileTarget>;

  constructor(uploads: AdminUploads | undefined, app: object) {
    this.#table = uploads?.table;
    this.#targets = uploads?.targets(app) ?? new Map();
  }

  /** A path that no mounted controller has. */
  faults(resources: readonly AdminResource[]): Fault[] {
    const paths = [...this.#targets.keys()];
    return resources.flatMap(({ name, files = {} }) =>
      Object.entries(files)
        .filter(([, path]) => !this.#targets.has(path))
        .map(([field, path]) => ({
          id: 'E011' as const,
          message: `admin resource "${name}": files.${field} is ${JSON.stringify(path)}, where no UploadController is mounted.${didYouMean(path, paths)}`,
          hint: paths.length === 0 ? 'Mount an UploadController.' : `Use one of ${paths.join(', ')}.`,
        })),
    );
  }

  /** Without a controller that takes files, the id of an upload is typed. */
  drawn({ refers = {}, files = {} }: AdminResource, fields: readonly AdminField[]): readonly AdminField[] {
    const [first] = this.#targets.values();
    return fields.map((field) => {
      if (this.#table === undefined || refers[field.name] !== this.#table) return field;
      const file = this.#targets.get(files[field.name] ?? '') ?? first;
      return file === undefined ? field : { ...field, kind: 'file', file };
    });
  }
}
