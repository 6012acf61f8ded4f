import { createHash } from 'node:crypto';
import { storedZip } from './stored-zip.ts';

export interface PythonWheel {
  /** As installers require it: `acme_api-1.0.0-py3-none-any.whl`. */
  readonly file: string;
  readonly bytes: Buffer;
}

/** Versions that installers compare, by PEP 440. */
const VERSION = /^(?:\d+!)?\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?(?:\.dev\d+)?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?$/;
const NAME = /^[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)*$/;

/** A sentence where `pip` would reject a package of this name and version. */
export function wheelFault(name: string, version: string): string | undefined {
  if (!NAME.test(name))
    return `--package: ${JSON.stringify(name)} is not a name of a Python package: letters and digits, joined by - or _.`;
  if (!VERSION.test(version))
    return `The version of the app, ${JSON.stringify(version)}, is not a version of a Python package. Use one such as 1.4.0 or 2.0.0rc1.`;
  return undefined;
}

/** A client as a package: `pip install` takes the file, and `import acme_api` is typed. The same text gives the same bytes. */
export function pythonWheel(text: string, { name, version, title }: Readonly<Record<'name' | 'version' | 'title', string>>): PythonWheel {
  const module = name.toLowerCase().replaceAll(/[-_.]+/g, '_');
  const info = `${module}-${version}.dist-info`;
  const metadata = [
    'Metadata-Version: 2.1',
    `Name: ${name}`,
    `Version: ${version}`,
    `Summary: Client of ${title.replaceAll(/[^\x20-\x7E]+/g, ' ')}`,
    'Requires-Python: >=3.11',
    'Requires-Dist: httpx>=0.23',
    'Requires-Dist: anyio>=3.6',
  ];
  const files = [
    { name: `${module}/__init__.py`, data: Buffer.from(text) },
    { name: `${module}/py.typed`, data: Buffer.alloc(0) },
    { name: `${info}/METADATA`, data: Buffer.from(`${metadata.join('\n')}\n`) },
    { name: `${info}/WHEEL`, data: Buffer.from('Wheel-Version: 1.0\nGenerator: kit client\nRoot-Is-Purelib: true\nTag: py3-none-any\n') },
  ];
  const hashed = files.map(
    (each) => `${each.name},sha256=${createHash('sha256').update(each.data).digest('base64url')},${each.data.length}`,
  );
  const record = { name: `${info}/RECORD`, data: Buffer.from(`${[...hashed, `${info}/RECORD,,`].join('\n')}\n`) };
  return { file: `${module}-${version}-py3-none-any.whl`, bytes: storedZip([...files, record]) };
}
