//! Which support for interruptions a script's library has.

/// The library that saves a script's checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Library {
    Lightning,
    Transformers,
    Keras,
    CatBoost,
    LightGbm,
    XgBoost,
    /// Plain PyTorch, or another library.
    None,
}

impl Library {
    /// Finds the library in a script's source.
    pub(super) fn of(source: &str) -> Self {
        let imports = |name: &str| source.lines().any(|line| imported(line).any(|module| module == name));
        if imports("lightning") || imports("pytorch_lightning") {
            Self::Lightning
        } else if imports("transformers") {
            Self::Transformers
        } else if imports("keras") || imports("tensorflow") {
            Self::Keras
        } else if imports("catboost") {
            Self::CatBoost
        } else if imports("lightgbm") {
            Self::LightGbm
        } else if imports("xgboost") {
            Self::XgBoost
        } else {
            Self::None
        }
    }

    pub(super) fn how_to_save(self) -> &'static str {
        match self {
            Self::Lightning => {
                "add `ModelCheckpoint(dirpath=os.environ[\"SPOTSWEEP_CHECKPOINTS\"], save_last=True)` to the callbacks"
            }
            Self::Transformers => {
                "set `output_dir` to $SPOTSWEEP_CHECKPOINTS, and `save_strategy=\"epoch\"` or `save_steps`"
            }
            Self::Keras => {
                "add `keras.callbacks.BackupAndRestore(os.environ[\"SPOTSWEEP_CHECKPOINTS\"])` to the callbacks"
            }
            Self::CatBoost => {
                "pass `save_snapshot=True`, `snapshot_interval=60` and `train_dir=os.environ[\"SPOTSWEEP_CHECKPOINTS\"]`"
            }
            Self::LightGbm => {
                "add a callback that calls `env.model.save_model` every few rounds, with a file below \
                 $SPOTSWEEP_CHECKPOINTS that is put in place by `os.replace`"
            }
            Self::XgBoost => {
                "add `xgboost.callback.TrainingCheckPoint(directory=os.environ[\"SPOTSWEEP_CHECKPOINTS\"], interval=10)` \
                 to the callbacks"
            }
            Self::None => "save model, optimizer and epoch below $SPOTSWEEP_CHECKPOINTS after each epoch",
        }
    }

    pub(super) fn how_to_resume(self) -> &'static str {
        match self {
            Self::Lightning => "pass `ckpt_path=\"last\"` to `trainer.fit`, and `save_last=True` to ModelCheckpoint",
            Self::Transformers => "call `trainer.train(resume_from_checkpoint=get_last_checkpoint(args.output_dir))`",
            Self::Keras => "use `BackupAndRestore`, or load the newest file and pass `initial_epoch`",
            Self::CatBoost => "pass `save_snapshot=True` and the same `train_dir` each time, with the same parameters",
            Self::LightGbm => "pass the saved file as `init_model=`, and as many rounds as are left",
            Self::XgBoost => "pass the newest saved file as `xgb_model=`, and as many rounds as are left",
            Self::None => "load the newest file below $SPOTSWEEP_CHECKPOINTS at the start, and go on after its epoch",
        }
    }

    pub(super) fn how_to_keep(self) -> &'static str {
        match self {
            Self::Keras => "pass `delete_checkpoint=False` to BackupAndRestore, which removes its files after `fit`",
            Self::Lightning | Self::Transformers | Self::CatBoost | Self::LightGbm | Self::XgBoost | Self::None => {
                "keep the newest checkpoint until the script has ended"
            }
        }
    }

    pub(super) fn how_to_save_at_the_signal(self) -> &'static str {
        match self {
            Self::Lightning => "add `save_on_exception=True` to ModelCheckpoint: it saves at the batch of the notice",
            Self::Transformers => "set `enable_jit_checkpoint=True`: it saves at the step of the notice",
            Self::CatBoost => "save more often: `snapshot_interval` is the time between two snapshots, in seconds",
            Self::LightGbm => "save more often, after fewer rounds",
            Self::XgBoost => {
                "save more often: `interval` of TrainingCheckPoint is the number of rounds between two saves"
            }
            Self::Keras | Self::None => {
                "save more often, or save in a handler of SIGTERM that is looked at after each batch"
            }
        }
    }
}

/// The packages that a line imports, such as `import torch, lightning as L` or `from keras.callbacks import …`.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    let line = line.trim_start();
    let from = line.strip_prefix("from ").and_then(|rest| rest.split_whitespace().next());
    let listed = line.strip_prefix("import ").map(|rest| rest.split(','));
    let listed = listed.into_iter().flatten().filter_map(|module| module.split_whitespace().next());
    from.into_iter().chain(listed).filter_map(|module| module.split('.').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_shows_in_the_imports() {
        for (source, expected) in [
            ("import lightning as L\n", Library::Lightning),
            ("x = 1\nfrom pytorch_lightning import Trainer", Library::Lightning),
            ("from transformers import Trainer", Library::Transformers),
            ("    import keras", Library::Keras),
            ("import torch, lightning.pytorch as pl", Library::Lightning),
            ("import lightgbm as lgb", Library::LightGbm),
            ("from catboost import CatBoostClassifier, Pool", Library::CatBoost),
            ("import numpy as np\nimport xgboost as xgb", Library::XgBoost),
            ("import lightning_utilities", Library::None),
            ("# import keras\nimport torch", Library::None),
        ] {
            assert_eq!(Library::of(source), expected, "{source}");
        }
    }
}
