//! Operations: one file each, and the services that they make. The list of each service's operations is generated from its folder
//! by `cargo xtask gen`.

pub mod acm;
pub mod acm_pca;
pub mod kms;
pub mod outlast;
pub mod rolesanywhere;
pub mod secretsmanager;
pub mod sts;
pub mod transfer;

use crate::aws;
use crate::table::ServiceRow;

/// Key Management Service.
pub static KMS: ServiceRow = ServiceRow { model: &aws::kms::SERVICE, operations: kms::OPERATIONS };

/// Private Certificate Authority.
pub static ACM_PCA: ServiceRow =
    ServiceRow { model: &aws::acm_pca::SERVICE, operations: acm_pca::OPERATIONS };

/// Certificate Manager.
pub static ACM: ServiceRow = ServiceRow { model: &aws::acm::SERVICE, operations: acm::OPERATIONS };

/// Secrets Manager.
pub static SECRETS_MANAGER: ServiceRow =
    ServiceRow { model: &aws::secretsmanager::SERVICE, operations: secretsmanager::OPERATIONS };

/// Security Token Service.
pub static STS: ServiceRow = ServiceRow { model: &aws::sts::SERVICE, operations: sts::OPERATIONS };

/// IAM Roles Anywhere.
pub static ROLES_ANYWHERE: ServiceRow =
    ServiceRow { model: &aws::rolesanywhere::SERVICE, operations: rolesanywhere::OPERATIONS };

/// Transfer Family.
pub static TRANSFER: ServiceRow =
    ServiceRow { model: &aws::transfer::SERVICE, operations: transfer::OPERATIONS };

/// Outlast's own operations, which AWS does not have.
pub static OUTLAST: ServiceRow =
    ServiceRow { model: &aws::outlast::SERVICE, operations: outlast::OPERATIONS };

/// Every service.
pub static SERVICES: &[&ServiceRow] =
    &[&KMS, &ACM_PCA, &ACM, &SECRETS_MANAGER, &STS, &ROLES_ANYWHERE, &TRANSFER, &OUTLAST];
