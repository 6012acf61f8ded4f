/** The names under which the packages are published. In this repository they are `kit`, `@kit/config-server` and `create-kit`. */
export interface PublicNames {
  readonly toolkit: string;
  readonly configServer: string;
  readonly create: string;
  /** What follows `npm create`: npm adds the `create-` itself. */
  readonly createCommand: string;
}

/** The names in this repository. On the npm registry they belong to other projects. */
export const WORKSPACE_NAMES: PublicNames = {
  toolkit: 'kit',
  configServer: '@kit/config-server',
  create: 'create-kit',
  createCommand: 'kit',
};

const NAME = /^(?:(@[a-z0-9][a-z0-9._-]*)\/)?([a-z0-9][a-z0-9._-]*)$/;

/** npm allows 214 characters; the longest name that we derive adds `-config-server`. */
const NAME_LENGTH_MAX = 200;

/** All names follow from one: `acme-api` gives `acme-api-config-server` and `create-acme-api`, `@acme/api` the same below `@acme`. */
export function publicNames(name: string): PublicNames {
  const [, scope, base] = NAME.exec(name) ?? [];
  if (base === undefined || name.length > NAME_LENGTH_MAX)
    throw new Error(
      `${JSON.stringify(name)} is not a package name. Use lowercase letters, digits, "-", "." and "_", with or without a scope: acme-api, @acme/api.`,
    );
  if (name === WORKSPACE_NAMES.toolkit || scope === '@kit')
    throw new Error(`"${name}" belongs to another project on the npm registry. Choose a name that is yours.`);
  const scoped = (text: string): string => (scope === undefined ? text : `${scope}/${text}`);
  return {
    toolkit: name,
    configServer: scoped(`${base}-config-server`),
    create: scoped(`create-${base}`),
    createCommand: name,
  };
}
