import type { AdminResourceShape } from '../api/shapes.ts';
import { Icon, type IconName } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { useLocation } from '../routing/use-location.ts';
import { useSession } from '../session/session-gate.tsx';
import css from './shell.module.css';

export function Navigation() {
  const { site } = useSession();
  const { place } = useLocation();
  const current = 'resource' in place ? place.resource : null;
  return (
    <>
      <ul className={css['list']}>
        <Item href={hashOf({ page: 'overview' })} icon="overview" label="Overview" isCurrent={place.page === 'overview'} />
      </ul>
      {groups(site.resources).map(([group, resources]) => (
        <div key={group}>
          <h2 className={css['group']}>{group}</h2>
          <ul className={css['list']}>
            {resources.map((resource) => (
              <Item
                key={resource.name}
                href={hashOf({ page: 'list', resource: resource.name })}
                icon={resource.icon ?? 'table'}
                label={resource.label}
                isCurrent={current === resource.name}
              />
            ))}
          </ul>
        </div>
      ))}
      <p className={css['version']}>Version {site.version}</p>
    </>
  );
}

interface ItemProps {
  readonly href: string;
  readonly icon: IconName;
  readonly label: string;
  readonly isCurrent: boolean;
}

function Item({ href, icon, label, isCurrent }: ItemProps) {
  return (
    <li>
      <a href={href} className={css['item']} aria-current={isCurrent ? 'page' : undefined}>
        <Icon name={icon} />
        {label}
      </a>
    </li>
  );
}

/** In the order in which the server names them. */
function groups(resources: readonly AdminResourceShape[]): [string, AdminResourceShape[]][] {
  return [...Map.groupBy(resources, (resource) => resource.group)];
}
