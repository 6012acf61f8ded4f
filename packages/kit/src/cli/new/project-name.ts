import { builtinModules } from 'node:module';

const NAME = /^[a-z0-9][a-z0-9._-]*$/;

/** npm's limit. */
const NAME_LENGTH_MAX = 214;

/** Why npm would not accept a package of this name, with a name that it would accept; undefined when it does. */
export function projectNameFault(name: string, dependencies: readonly string[]): string | undefined {
  const proposal = proposedName(name);
  const instead = proposal === '' || proposal === name ? '' : ` For example: ${proposal}`;
  if (!NAME.test(name))
    return `${JSON.stringify(name)} cannot be the name of a package: use lowercase letters, digits, "-", "." and "_", and begin with a letter or a digit.${instead}`;
  if (name.length > NAME_LENGTH_MAX) return `The name has ${name.length} characters; npm allows ${NAME_LENGTH_MAX}.`;
  if (name === 'node_modules' || name === 'favicon.ico' || builtinModules.includes(name))
    return `"${name}" is reserved by npm or Node. For example: ${name.replaceAll(/\W/g, '-')}-api`;
  if (dependencies.includes(name))
    return `"${name}" is a package that the project depends on, and npm cannot install a package into itself. For example: my-${name}`;
  return undefined;
}

function proposedName(name: string): string {
  return name
    .normalize('NFKD')
    .replaceAll(/\p{M}+/gu, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replaceAll(/^[^a-z0-9]+|[^a-z0-9]+$/g, '');
}
