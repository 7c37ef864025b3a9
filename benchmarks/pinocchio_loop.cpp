// Loops over Pinocchio's algorithms in the installed library: their cost without Python.
#include <memory>
#include <string>

#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

namespace
{
using States = Eigen::Map<const Eigen::MatrixXd>;
using State = Eigen::Ref<const Eigen::VectorXd>;  // argument type of the library's own instances

struct Chain
{
  pinocchio::Model model;
  std::unique_ptr<pinocchio::Data> data;
};

pinocchio::JointModel joint(char axis)
{
  switch (axis) {
    case 'z': return pinocchio::JointModelPZ();
    case 'Y': return pinocchio::JointModelRY();
    default: return pinocchio::JointModelRX();
  }
}

template<typename Algorithm>
void each(
  void * chain, int count, const double * q, const double * qd, const double * given, double * found,
  Algorithm algorithm)
{
  auto & [model, data] = *static_cast<Chain *>(chain);
  const States positions(q, model.nv, count), rates(qd, model.nv, count), inputs(given, model.nv, count);
  Eigen::Map<Eigen::MatrixXd> outputs(found, model.nv, count);
  for (int i = 0; i < count; ++i) {
    const State position = positions.col(i), rate = rates.col(i), input = inputs.col(i);
    outputs.col(i) = algorithm(model, *data, position, rate, input);
  }
}
}  // namespace

extern "C" {
// A chain of joints zYX (see chains.py), each with a point mass [kg] behind it.
void * make_chain(int joints, const char * axes, const double * masses, const double * gravity)
{
  auto * chain = new Chain;
  const auto here = pinocchio::SE3::Identity();
  for (int k = 0; k < joints; ++k) {
    const auto id = chain->model.addJoint(k, joint(axes[k]), here, std::to_string(k));
    const pinocchio::Inertia body(masses[k], Eigen::Vector3d::Zero(), Eigen::Matrix3d::Zero());
    chain->model.appendBodyToJoint(id, body, here);
  }
  chain->model.gravity.linear() = Eigen::Map<const Eigen::Vector3d>(gravity);
  chain->data = std::make_unique<pinocchio::Data>(chain->model);
  return chain;
}

void inverse(void * chain, int count, const double * q, const double * qd, const double * qdd, double * tau)
{
  each(chain, count, q, qd, qdd, tau, [](auto &... args) -> decltype(auto) { return pinocchio::rnea(args...); });
}

void forward(void * chain, int count, const double * q, const double * qd, const double * tau, double * qdd)
{
  each(chain, count, q, qd, tau, qdd, [](auto &... args) -> decltype(auto) { return pinocchio::aba(args...); });
}
}
